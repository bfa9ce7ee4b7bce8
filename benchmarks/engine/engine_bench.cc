// What a step costs the engine's thread, without any model: schedule, launch, update, post.
//   bench_engine [--steps N] [--depth 1|2] [--rounds N]
// Printed is CPU time of the thread per step, the executor's own not counted: the best and the median of some
// rounds, and where it goes. Bar: 150 us at 256 sequences, in the best round; exit code 1 above it.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "fakes/piece_tokenizer.h"
#include "null_executor.h"
#include "src/control/engine/engine_core.h"
#include "src/control/engine/request_admission.h"

namespace omnibus {
namespace {

constexpr int32_t kMaxModelLen = 8192;
constexpr double kBarUs = 150;

struct Options {
  int64_t steps = 2000;
  int32_t depth = 1, rounds = 5;
};

struct Load {
  const char* name = "";
  int32_t batch = 1;
  int32_t prompt = 64;
  int32_t max_tokens = kMaxModelLen;  // of each sequence; when it ends, another takes its place
  bool long_prompts = false;          // one prompt of 4,096 tokens is always being prefilled
};

struct Cost {
  double launch_us = 0, complete_us = 0, flush_us = 0;
  double all_us() const { return launch_us + complete_us + flush_us; }
};

// An engine as AsyncEngine builds it, driven from here.
class Bench {
 public:
  Bench(const Load& load, const Options& options)
      : load_(load), options_(options), tokenizer_(fakes::make_piece_tokenizer({})) {
    const int32_t rows = load.batch + (load.long_prompts ? 1 : 0);
    executor_ = std::make_unique<NullExecutor>(rows * 600, options.depth);
    EngineConfig config;
    config.max_model_len = kMaxModelLen;
    config.max_num_seqs = rows;
    config.max_num_batched_tokens = 512 + rows;
    config.max_waiting_requests = 1 << 20;  // the ledger hears of ends on the text thread: late
    config.max_waiting_tokens = int64_t{1} << 40;
    SchedulerConfig scheduler;
    scheduler.max_model_len = config.max_model_len;
    scheduler.max_num_seqs = config.max_num_seqs;
    scheduler.max_num_batched_tokens = config.max_num_batched_tokens;
    scheduler.epoch = 1;
    scheduler.max_steps_in_flight = options.depth;
    scheduler.from_step = options.depth > 1;
    scheduler_ = *Scheduler::create(scheduler, executor_->start()->kv, &clock_);
    ledger_ = std::make_unique<RequestLedger>(ledger_limits(config, *scheduler_), &clock_);
    const EngineMetrics metrics(registry_, "null");
    outputs_ =
        std::make_unique<OutputProcessor>(1, tokenizer_, ledger_.get(), metrics, [](RequestId, int32_t) {});
    admission_ = std::make_unique<RequestAdmission>(
        RequestAdmissionParts{scheduler_.get(), tokenizer_.get(), ledger_.get(), &clock_});
    EngineCoreParts parts;
    parts.scheduler = scheduler_.get();
    parts.executor = executor_.get();
    parts.outputs = outputs_.get();
    parts.ledger = ledger_.get();
    parts.state = &state_;
    parts.clock = &clock_;
    parts.vocab_size = tokenizer_->vocab_size();
    parts.max_steps_in_flight = options.depth;
    core_ = std::make_unique<EngineCore>(parts, metrics);
    if (const Status warm = core_->warm_up(); !warm.ok()) throw std::runtime_error(warm.ToString());
  }

  // Per step.
  Cost run(int64_t steps) {
    Cost sum;
    for (int64_t i = 0; i < steps; ++i) {
      refill();
      const int64_t executor = executor_->cpu_ns();
      const int64_t t0 = thread_cpu_ns();
      core_->expire();
      core_->launch();
      const int64_t t1 = thread_cpu_ns();
      core_->complete();
      const int64_t t2 = thread_cpu_ns();
      core_->flush();
      const int64_t t3 = thread_cpu_ns();
      if (core_->failed()) throw std::runtime_error(state_.failure().ToString());
      sum.launch_us += static_cast<double>(t1 - t0 - (executor_->cpu_ns() - executor)) / 1e3;
      sum.complete_us += static_cast<double>(t2 - t1) / 1e3;
      sum.flush_us += static_cast<double>(t3 - t2) / 1e3;
    }
    const auto n = static_cast<double>(steps);
    return {sum.launch_us / n, sum.complete_us / n, sum.flush_us / n};
  }
  double tokens_per_step() const {
    return static_cast<double>(executor_->tokens()) / static_cast<double>(state_.steps);
  }

 private:
  void submit(int32_t prompt, int32_t max_tokens) {
    GenerateRequest request;
    request.prompt_token_ids.assign(static_cast<size_t>(prompt), 'p');
    request.prompt_token_ids[0] = static_cast<TokenId>(salt_++ % 200);  // no two prompts begin alike
    request.prompt_token_ids[1] = static_cast<TokenId>(salt_ / 200 % 200);
    request.sampling.max_tokens = max_tokens;
    request.sampling.ignore_eos = true;
    auto command = admission_->admit(std::move(request), [](RequestOutput) {});
    if (!command.ok()) throw std::runtime_error(command.status().ToString());
    core_->handle(**command);
  }

  // Not measured: as many sequences as the load says. Lengths are spread, so that ends are too.
  void refill() {
    const int32_t open = scheduler_->num_running() + scheduler_->num_waiting();
    int32_t missing = load_.batch + (load_.long_prompts ? 1 : 0) - open;
    if (missing > 0 && load_.long_prompts) {
      submit(4096, 1);
      --missing;
    }
    for (; missing > 0; --missing)
      submit(load_.prompt, load_.max_tokens == kMaxModelLen
                               ? kMaxModelLen
                               : load_.max_tokens / 2 + static_cast<int32_t>(salt_ % load_.max_tokens));
  }

  const Load load_;
  const Options options_;
  const SteadyClock clock_;
  MetricsRegistry registry_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  EngineState state_;
  std::unique_ptr<NullExecutor> executor_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<RequestLedger> ledger_;
  std::unique_ptr<RequestAdmission> admission_;
  std::unique_ptr<OutputProcessor> outputs_;
  std::unique_ptr<EngineCore> core_;
  uint64_t salt_ = 0;
};

// Whether the load keeps the bar.
bool measure(const Load& load, const Options& options) {
  std::vector<Cost> costs;
  double tokens = 0;
  for (int32_t round = 0; round < options.rounds; ++round) {
    Bench bench(load, options);
    bench.run(50);  // everything is running
    costs.push_back(bench.run(options.steps));
    tokens = bench.tokens_per_step();
  }
  std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) { return a.all_us() < b.all_us(); });
  const Cost& best = costs.front();
  const bool above = load.batch == 256 && best.all_us() > kBarUs;
  fmt::print("{:<22} {:>4} {:>8.1f} {:>9.1f} {:>9.1f} {:>8.1f} {:>9.1f} {:>7.1f}{}\n", load.name, load.batch,
             tokens, best.all_us(), costs[costs.size() / 2].all_us(), best.launch_us, best.complete_us,
             best.flush_us, above ? "  ABOVE THE BAR" : "");
  std::fflush(stdout);
  return !above;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Host cost of a step");
  app.add_option("--steps", options.steps, "Measured steps of a round");
  app.add_option("--depth", options.depth, "Steps in flight")->check(CLI::Range(1, 2));
  app.add_option("--rounds", options.rounds, "Rounds");
  CLI11_PARSE(app, argc, argv);
  fmt::print("CPU time of the engine's thread per step, us; depth {}\n", options.depth);
  fmt::print("{:<22} {:>4} {:>8} {:>9} {:>9} {:>8} {:>9} {:>7}\n", "load", "seqs", "tokens", "best", "median",
             "launch", "complete", "flush");
  bool kept = true;
  for (const int32_t batch : {1, 64, 256}) {
    kept &= measure({.name = "decode", .batch = batch}, options);
    kept &= measure({.name = "decode, ends", .batch = batch, .max_tokens = 128}, options);
    kept &= measure({.name = "decode and prefill", .batch = batch, .long_prompts = true}, options);
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  try {
    return omnibus::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_engine: {}\n", e.what());
    return 1;
  }
}
