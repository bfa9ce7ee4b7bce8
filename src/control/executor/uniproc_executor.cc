// UniProcExecutor: the single worker of this process, stepped inline on the engine's thread.
#include <exception>
#include <string>
#include <utility>

#include "omnibus/control/executor/executor.h"

namespace omnibus {
namespace {

using StepResult = StatusOr<ModelRunnerOutput>;

std::future<StepResult> ready(StepResult result) {
  std::promise<StepResult> promise;
  promise.set_value(std::move(result));
  return promise.get_future();
}

// Exceptions of the worker end here.
template <typename Call>
auto guarded(const char* what, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    return absl::InternalError(std::string(what) + " failed: " + e.what());
  }
}

class UniProcExecutor final : public Executor {
 public:
  explicit UniProcExecutor(std::unique_ptr<WorkerBase> worker) : worker_(std::move(worker)) {}

  StatusOr<MemoryPlan> start() override {
    return guarded("starting the worker", [&] { return start_worker(); });
  }

  std::future<StepResult> execute(SchedulerOutput plan) override {
    if (!broken_.ok()) return ready(broken_);
    StepResult result = guarded("the step", [&] { return step(std::move(plan)); });
    // The worker's mirror is unknown after a failure: no step may follow.
    if (!result.ok()) broken_ = result.status();
    return ready(std::move(result));
  }

  int32_t max_concurrent_batches() const override { return 1; }
  Epoch epoch() const override { return kEpoch; }
  // An inline worker fails inside execute() only.
  void set_failure_callback(std::function<void(Status)>) override {}
  Status control(const ControlOp& op) override {
    return guarded("the control operation", [&] { return worker_->control(op); });
  }

 private:
  static constexpr Epoch kEpoch = 1;

  StatusOr<MemoryPlan> start_worker() {
    OMNIBUS_RETURN_IF_ERROR(worker_->init());
    OMNIBUS_ASSIGN_OR_RETURN(MemoryPlan plan, worker_->capacity());
    OMNIBUS_RETURN_IF_ERROR(worker_->load());
    OMNIBUS_RETURN_IF_ERROR(worker_->allocate_kv(plan.kv));
    OMNIBUS_RETURN_IF_ERROR(worker_->join({.epoch = kEpoch, .ranks = {0}, .comm_ids = {}}));
    digest_ = 0;
    return plan;
  }

  StepResult step(SchedulerOutput plan) {
    const StepId id = plan.id;
    if (id.epoch != kEpoch)
      return absl::InternalError("step of epoch " + std::to_string(id.epoch) + " in epoch " +
                                 std::to_string(kEpoch));
    const PlanDigest expected = digest_plan(digest_, plan);
    OMNIBUS_ASSIGN_OR_RETURN(const PlanDigest got, worker_->prepare(std::move(plan)).get());
    if (got != expected)
      return absl::InternalError("the worker read another plan than was made for step " +
                                 std::to_string(id.seq));
    digest_ = expected;
    return worker_->commit(id).get();
  }

  std::unique_ptr<WorkerBase> worker_;
  PlanDigest digest_ = 0;  // of all plans since join
  Status broken_;
};

}  // namespace

std::unique_ptr<Executor> make_uniproc_executor(std::unique_ptr<WorkerBase> worker) {
  return std::make_unique<UniProcExecutor>(std::move(worker));
}

}  // namespace omnibus
