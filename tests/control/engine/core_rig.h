// An EngineCore on an executor of the test's, driven from the test's thread; outputs are delivered by
// flush().
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "engine_fixture.h"
#include "src/control/engine/engine_core.h"
#include "src/control/engine/request_admission.h"

namespace omnibus {

class CoreRig {
 public:
  explicit CoreRig(std::unique_ptr<Executor> made, const Clock* clock, int32_t depth = 1)
      : executor(std::move(made)), tokenizer_(fakes::make_piece_tokenizer({})) {
    const EngineConfig config = EngineFixture::default_config();
    SchedulerConfig c;
    c.max_model_len = config.max_model_len;
    c.max_num_seqs = config.max_num_seqs;
    c.max_num_batched_tokens = config.max_num_batched_tokens;
    c.epoch = executor->epoch();
    c.max_steps_in_flight = depth;
    c.from_step = depth > 1;
    scheduler = *Scheduler::create(c, executor->start()->kv, clock);
    ledger = std::make_unique<RequestLedger>(ledger_limits(config, *scheduler), clock);
    const EngineMetrics metrics(registry, "rig");
    outputs_ =
        std::make_unique<OutputProcessor>(0, tokenizer_, ledger.get(), metrics, [](RequestId, int32_t) {});
    admission_ = std::make_unique<RequestAdmission>(
        RequestAdmissionParts{scheduler.get(), tokenizer_.get(), ledger.get(), clock});
    EngineCoreParts parts;
    parts.scheduler = scheduler.get();
    parts.executor = executor.get();
    parts.outputs = outputs_.get();
    parts.ledger = ledger.get();
    parts.state = &state;
    parts.clock = clock;
    parts.vocab_size = tokenizer_->vocab_size();
    parts.max_steps_in_flight = depth;
    core = std::make_unique<EngineCore>(parts, metrics);
    const Status warm = core->warm_up();
    EXPECT_TRUE(warm.ok()) << warm;
  }

  // What handle() takes; the ledger knows of it.
  std::unique_ptr<EngineCommand> admit(GenerateRequest request, OutputSink sink) {
    auto command = admission_->admit(std::move(request), std::move(sink));
    EXPECT_TRUE(command.ok()) << command.status();
    return *std::move(command);
  }
  void step() {
    core->expire();
    core->launch();
    core->complete();
    core->flush();
  }
  void run_until_idle() {
    while (core->has_work()) step();
  }

  std::unique_ptr<Executor> executor;
  MetricsRegistry registry;
  EngineState state;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<RequestLedger> ledger;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<OutputProcessor> outputs_;
  std::unique_ptr<RequestAdmission> admission_;

 public:
  std::unique_ptr<EngineCore> core;  // last: uses all the rest
};

}  // namespace omnibus
