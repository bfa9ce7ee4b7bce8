// SteppedWorker: one worker behind its rules: start in order, prepare before commit, digests that agree, no
// step after a failure. Exceptions of the worker end here. For executors of a single worker.
#pragma once

#include <memory>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/step/memory_plan.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/contract/step/worker_base.h"

namespace omnibus {

// One thread, as WorkerBase says.
class SteppedWorker {
 public:
  static constexpr Epoch kEpoch = 1;

  explicit SteppedWorker(std::unique_ptr<WorkerBase> worker) : worker_(std::move(worker)) {}

  StatusOr<MemoryPlan> start();
  // After the first failure: the same failure again.
  StatusOr<ModelRunnerOutput> step(SchedulerOutput plan);
  Status control(const ControlOp& op);

 private:
  StatusOr<MemoryPlan> start_worker();
  StatusOr<ModelRunnerOutput> run(SchedulerOutput plan);

  const SteadyClock clock_;
  const std::unique_ptr<WorkerBase> worker_;
  PlanDigest digest_ = 0;  // of all plans since join
  Status broken_;
};

}  // namespace omnibus
