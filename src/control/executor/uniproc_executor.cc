// UniProcExecutor: the single worker of this process, stepped inline on the engine's thread.
#include <utility>

#include "omnibus/control/executor/executor.h"

#include "stepped_worker.h"

namespace omnibus {
namespace {

using StepResult = StatusOr<ModelRunnerOutput>;

class UniProcExecutor final : public Executor {
 public:
  explicit UniProcExecutor(std::unique_ptr<WorkerBase> worker) : worker_(std::move(worker)) {}

  StatusOr<MemoryPlan> start() override { return worker_.start(); }

  std::future<StepResult> execute(SchedulerOutput plan) override {
    std::promise<StepResult> promise;
    promise.set_value(worker_.step(std::move(plan)));
    return promise.get_future();
  }

  int32_t max_concurrent_batches() const override { return 1; }
  Epoch epoch() const override { return SteppedWorker::kEpoch; }
  // An inline worker fails inside execute() only.
  void set_failure_callback(std::function<void(Status)>) override {}
  Status control(const ControlOp& op) override { return worker_.control(op); }

 private:
  SteppedWorker worker_;
};

}  // namespace

std::unique_ptr<Executor> make_uniproc_executor(std::unique_ptr<WorkerBase> worker) {
  return std::make_unique<UniProcExecutor>(std::move(worker));
}

}  // namespace omnibus
