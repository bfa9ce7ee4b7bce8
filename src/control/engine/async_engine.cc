#include "omnibus/control/engine/async_engine.h"

#include <algorithm>
#include <exception>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "omnibus/base/common/check.h"

#include "engine_core.h"
#include "submit_checks.h"

namespace omnibus {
namespace {

// A step may take this long before the server calls itself stuck. A big chunk of a big model on few cores
// takes minutes; a restart by an impatient supervisor would only begin it again.
constexpr MonotonicNs kStallNs = 300'000'000'000;
// After a drain's limit: time for the aborted streams to hear of it.
constexpr std::chrono::milliseconds kAbortGrace{1000};
constexpr std::chrono::seconds kControlLimit{30};  // for a command that waits for the step in flight
constexpr int64_t kWaitingPromptPerKv = 4;         // prompt tokens that may wait, in KV capacities

Status draining() {
  ErrorDetail detail;
  detail.retry_after_ms = 1000;
  return with_detail(absl::UnavailableError("the server is shutting down"), detail);
}

RequestLimits limits_of(const EngineConfig& config, const Scheduler& scheduler) {
  return {config.max_num_seqs + config.max_waiting_requests,
          (kWaitingPromptPerKv + 1) * scheduler.kv().capacity_tokens()};
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
        ledger_(limits_of(config_, *scheduler_), clock),
        inbox_(inbox_capacity(config_)),
        metrics_(*registry, config_.model_name),
        outputs_(std::max(config_.text_threads, 1), tokenizer_, &ledger_, metrics_,
                 [this](RequestId id, int32_t n_tokens) {
                   send(FinishCommand{id, n_tokens});
                 }),
        core_(core_parts(), metrics_) {
    executor_->set_failure_callback([this](Status why) { send(FailCommand{std::move(why)}); });
  }

  ~AsyncEngineImpl() override {
    ledger_.stop_admission(draining());
    if (!thread_.joinable()) return;
    send(StopCommand{absl::UnavailableError("the server is shutting down")});
    thread_.join();
  }

  Status warm_up_and_run() {
    // On the engine thread from the first step on: the worker may bind itself to the thread that drives it.
    std::promise<Status> warm;
    std::future<Status> result = warm.get_future();
    thread_ = std::thread([this, warm = std::move(warm)]() mutable {
      const Status status = warm_up();
      warm.set_value(status);
      if (status.ok()) core_.run();
    });
    return result.get();
  }

  StatusOr<RequestId> submit(GenerateRequest request, OutputSink sink) override {
    const auto prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
    OMNIBUS_RETURN_IF_ERROR(scheduler_->can_serve(prompt_tokens));
    OMNIBUS_RETURN_IF_ERROR(
        check_request(request, tokenizer_->vocab_size(), tokenizer_->spec().end_of_generation));
    const RequestId id = next_id_.fetch_add(static_cast<RequestId>(request.n));
    auto parent = std::make_shared<ParentRequest>();
    parent->id = id;
    parent->n = request.n;
    parent->prompt_tokens = static_cast<int32_t>(prompt_tokens);
    parent->sampling = request.sampling;
    parent->stops = std::make_shared<StopAutomaton>(request.sampling.stop);
    parent->reasoning = request.reasoning;
    parent->sink = std::move(sink);
    OMNIBUS_RETURN_IF_ERROR(ledger_.open(id, request.n, parent->prompt_tokens));
    SubmitCommand command;
    command.parent = std::move(parent);
    command.choices = fan_out(request, id, scheduler_->max_output_tokens(prompt_tokens),
                              tokenizer_->spec().end_of_generation, clock_->now_ns());
    send(std::move(command));
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
    const MonotonicNs busy_since = state_.busy_since_ns;
    if (const Status failure = state_.failure(); !failure.ok()) {
      health.trouble = EngineTrouble::kFailed;
      health.reason = "failed: " + status_message(failure);
    } else if (busy_since != 0 && clock_->now_ns() - busy_since > kStallNs) {
      health.trouble = EngineTrouble::kStalled;
      health.reason = "stalled";
    } else if (health.draining) {
      health.trouble = EngineTrouble::kDraining;
      health.reason = "draining";
    }
    return health;
  }

  const EngineConfig& config() const override { return config_; }
  const MemoryPlan& memory_plan() const override { return plan_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }

  bool drain(std::chrono::milliseconds limit) override {
    ledger_.stop_admission(draining());
    if (ledger_.wait_empty(limit)) return true;
    send(AbortAllCommand{absl::UnavailableError("the server is shutting down")});
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

  // During one step every open sequence may be cancelled and finish, and as many new ones come in and be
  // cancelled; the rest is for control.
  static size_t inbox_capacity(const EngineConfig& config) {
    return 4 * (static_cast<size_t>(config.max_num_seqs) + static_cast<size_t>(config.max_waiting_requests)) +
           64;
  }

  EngineCoreParts core_parts() {
    EngineCoreParts parts;
    parts.scheduler = scheduler_.get();
    parts.executor = executor_.get();
    parts.outputs = &outputs_;
    parts.ledger = &ledger_;
    parts.inbox = &inbox_;
    parts.state = &state_;
    parts.clock = clock_;
    parts.vocab_size = tokenizer_->vocab_size();
    parts.check_integrity = config_.check_integrity;
    return parts;
  }

  void send(EngineCommand command) {
    OMNIBUS_CHECK(inbox_.try_push(std::make_unique<EngineCommand>(std::move(command))),
                  "the engine's inbox holds all that admission lets in");
  }

  const EngineConfig config_;
  const MemoryPlan plan_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Clock* const clock_;
  const int32_t total_blocks_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<Scheduler>
      scheduler_;  // the engine thread's, but for what it documents as thread-safe
  std::atomic<RequestId> next_id_{1};
  EngineState state_;
  RequestLedger ledger_;
  EngineInbox inbox_;
  EngineMetrics metrics_;
  OutputProcessor outputs_;
  EngineCore core_;
  std::thread thread_;
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
  if (config.max_waiting_requests < 0)
    return absl::InvalidArgumentError("max_waiting_requests must not be negative");
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
