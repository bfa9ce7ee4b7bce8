#include "omnibus/control/engine/async_engine.h"

#include <algorithm>
#include <exception>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/unavailable.h"

#include "engine_core.h"
#include "engine_loop.h"
#include "engine_monitor.h"
#include "request_admission.h"

namespace omnibus {
namespace {

// After a drain's limit: time for the aborted streams to hear of it.
constexpr std::chrono::milliseconds kAbortGrace{1000};
constexpr std::chrono::seconds kControlLimit{30};  // for a command that waits for the step in flight
// Admission bounds what is in the inbox: an open sequence is submitted, cancelled and finished once each.
constexpr size_t kInboxCapacity = std::numeric_limits<size_t>::max();

Status draining() { return unavailable_for_now("the server is shutting down"); }

Status check_limits(const EngineLimits& limits) {
  if (limits.max_waiting_requests < 0)
    return absl::InvalidArgumentError("max_waiting_requests must not be negative");
  if (limits.max_waiting_tokens < 0)
    return absl::InvalidArgumentError("max_waiting_tokens must not be negative");
  return check_fair_sharing(limits.fair_sharing);
}

int32_t steps_in_flight(const EngineConfig& config, const Executor& executor) {
  return config.async_scheduling ? executor.max_concurrent_batches() : 1;
}

class AsyncEngineImpl final : public AsyncEngine {
 public:
  struct Parts {
    EngineConfig config;
    std::unique_ptr<Executor> executor;
    std::shared_ptr<const Tokenizer> tokenizer;
    MemoryPlan plan;
    std::unique_ptr<Scheduler> scheduler;
  };

  AsyncEngineImpl(Parts parts, MetricsRegistry* registry, const Clock* clock)
      : config_(std::move(parts.config)),
        plan_(std::move(parts.plan)),
        tokenizer_(std::move(parts.tokenizer)),
        clock_(clock),
        total_blocks_(parts.scheduler->kv().total_blocks()),
        executor_(std::move(parts.executor)),
        scheduler_(std::move(parts.scheduler)),
        metrics_(*registry, config_.model_name, config_.max_model_len),
        ledger_(ledger_limits(config_, *scheduler_), clock, metrics_.open_prompt_tokens),
        admission_({scheduler_.get(), tokenizer_.get(), &ledger_, clock}),
        inbox_(kInboxCapacity),
        outputs_(std::max(config_.text_threads, 1), tokenizer_, &ledger_, metrics_,
                 [this](RequestId id, int32_t n_tokens) {
                   send(FinishCommand{id, n_tokens});
                 }),
        core_(core_parts(), metrics_) {
    publish_engine_info(*registry, config_, total_blocks_);
    executor_->set_failure_callback([this](Status why) { send(FailCommand{std::move(why)}); });
  }

  ~AsyncEngineImpl() override {
    ledger_.stop_admission(draining());
    monitor_.reset();
    if (thread_.joinable()) {
      send(StopCommand{draining()});
      thread_.join();
    }
    executor_.reset();  // its thread may report a failure until then
  }

  Status warm_up_and_run() {
    // On the engine thread from the first step on: the worker may bind itself to the thread that drives it.
    std::promise<Status> warm;
    std::future<Status> result = warm.get_future();
    thread_ = std::thread([this, warm = std::move(warm)]() mutable {
      const Status status = warm_up();
      warm.set_value(status);
      if (status.ok()) run_engine(core_, inbox_);
    });
    OMNIBUS_RETURN_IF_ERROR(result.get());
    monitor_.emplace(&state_, clock_, [this](uint64_t number) { send(PingCommand{number}); });
    return absl::OkStatus();
  }

  StatusOr<RequestId> submit(GenerateRequest request, OutputSink sink) override {
    StatusOr<std::unique_ptr<EngineCommand>> command = unavailable_for_now("the server is stalled");
    if (!monitor_->stalled()) command = admission_.admit(std::move(request), std::move(sink));
    if (!command.ok()) {
      metrics_.add_refusal(command.status());
      return command.status();
    }
    const ParentRequest& parent = *std::get<SubmitCommand>(**command).parent;
    const RequestId id = parent.id;
    const int32_t n = parent.n;
    try {
      push(*std::move(command));
    } catch (const std::exception&) {  // out of memory: the core will never end these
      for (int32_t i = 0; i < n; ++i) ledger_.close_one(id, false);
      throw;
    }
    return id;
  }

  void cancel(RequestId id) override {
    if (const auto n = ledger_.cancel(id)) send(CancelCommand{id, *n});
  }

  Status reset_prefix_cache() override {
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> reset = done->get_future();
    send(ResetPrefixCacheCommand{std::move(done)});
    if (reset.wait_for(kControlLimit) == std::future_status::ready) return absl::OkStatus();
    return absl::DeadlineExceededError("the engine did not come round to it in time");
  }

  EngineHealth health() const override {
    EngineHealth health;
    health.draining = ledger_.admission_stopped();
    health.running = state_.running;
    health.waiting = state_.waiting;
    health.steps = state_.steps;
    health.total_blocks = total_blocks_;
    health.used_blocks = state_.used_blocks;
    if (const Status failure = state_.failure(); !failure.ok()) {
      health.trouble = EngineTrouble::kFailed;
      health.reason = "failed: " + status_message(failure);
    } else if (monitor_->stalled()) {
      health.trouble = EngineTrouble::kStalled;
      health.reason = "stalled";
    } else if (health.draining) {
      health.trouble = EngineTrouble::kDraining;
      health.reason = "draining";
    }
    return health;
  }

  Status set_limits(const EngineLimits& limits) override {
    OMNIBUS_RETURN_IF_ERROR(check_limits(limits));
    EngineConfig changed = config_;
    changed.max_waiting_requests = limits.max_waiting_requests;
    changed.max_waiting_tokens = limits.max_waiting_tokens;
    ledger_.set_limits(ledger_limits(changed, *scheduler_));
    send(SetFairSharingCommand{limits.fair_sharing});
    return absl::OkStatus();
  }

  const EngineConfig& config() const override { return config_; }
  const MemoryPlan& memory_plan() const override { return plan_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }

  bool drain(std::chrono::milliseconds limit) override {
    ledger_.stop_admission(draining());
    if (ledger_.wait_empty(limit)) return true;
    send(AbortAllCommand{draining()});
    ledger_.wait_empty(kAbortGrace);
    return false;
  }

 private:
  Status warm_up() {
    try {
      return core_.warm_up();
    } catch (const std::exception& e) {
      return absl::InternalError(std::string("exception in the first step: ") + e.what());
    }
  }

  EngineCoreParts core_parts() {
    EngineCoreParts parts;
    parts.scheduler = scheduler_.get();
    parts.executor = executor_.get();
    parts.outputs = &outputs_;
    parts.ledger = &ledger_;
    parts.state = &state_;
    parts.clock = clock_;
    parts.vocab_size = tokenizer_->vocab_size();
    parts.max_steps_in_flight = steps_in_flight(config_, *executor_);
    parts.step_target_ns = static_cast<int64_t>(config_.step_target_s * 1e9);
    parts.step_timeout_ns = static_cast<int64_t>(config_.step_timeout_s * 1e9);
    parts.check_integrity = config_.check_integrity;
    return parts;
  }

  void send(EngineCommand command) { push(std::make_unique<EngineCommand>(std::move(command))); }

  void push(std::unique_ptr<EngineCommand> command) {
    OMNIBUS_CHECK(inbox_.try_push(std::move(command)), "the engine's inbox holds all that admission lets in");
  }

  const EngineConfig config_;
  const MemoryPlan plan_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Clock* const clock_;
  const int32_t total_blocks_;
  std::unique_ptr<Executor> executor_;
  const std::unique_ptr<Scheduler>
      scheduler_;  // the engine thread's, but for what it documents as thread-safe
  EngineState state_;
  EngineMetrics metrics_;
  RequestLedger ledger_;
  RequestAdmission admission_;
  EngineInbox inbox_;
  OutputProcessor outputs_;
  EngineCore core_;
  std::thread thread_;
  std::optional<EngineMonitor> monitor_;  // from the end of the warm-up on
};

StatusOr<std::unique_ptr<AsyncEngine>> start_engine(AsyncEngineImpl::Parts parts, MetricsRegistry* metrics,
                                                    const Clock* clock) {
  const EngineConfig& c = parts.config;
  OMNIBUS_ASSIGN_OR_RETURN(parts.plan, parts.executor->start());
  SchedulerConfig config;
  config.max_model_len = c.max_model_len;
  config.max_num_seqs = c.max_num_seqs;
  config.max_num_batched_tokens = c.max_num_batched_tokens;
  config.numerics = c.numerics;
  config.epoch = parts.executor->epoch();
  config.policy = c.policy;
  config.fair_sharing = c.fair_sharing;
  config.prefix_caching = c.prefix_caching;
  config.model = c.model_name;
  config.max_steps_in_flight = steps_in_flight(c, *parts.executor);
  config.from_step = config.max_steps_in_flight > 1;
  OMNIBUS_ASSIGN_OR_RETURN(parts.scheduler, Scheduler::create(config, parts.plan.kv, clock));
  auto engine = std::make_unique<AsyncEngineImpl>(std::move(parts), metrics, clock);
  OMNIBUS_RETURN_IF_ERROR(engine->warm_up_and_run());
  return engine;
}

}  // namespace

StatusOr<std::unique_ptr<AsyncEngine>> AsyncEngine::start(const EngineConfig& config,
                                                          std::unique_ptr<Executor> executor,
                                                          std::shared_ptr<const Tokenizer> tokenizer,
                                                          MetricsRegistry* metrics, const Clock* clock) {
  OMNIBUS_RETURN_IF_ERROR(
      check_limits({config.max_waiting_requests, config.max_waiting_tokens, config.fair_sharing}));
  if (config.async_scheduling && executor->max_concurrent_batches() < 2)
    return absl::InvalidArgumentError("async_scheduling needs an executor that takes a step while one runs");
  AsyncEngineImpl::Parts parts;
  parts.config = config;
  parts.executor = std::move(executor);
  parts.tokenizer = std::move(tokenizer);
  try {
    return start_engine(std::move(parts), metrics, clock);
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("the engine could not start: ") + e.what());
  }
}

}  // namespace omnibus
