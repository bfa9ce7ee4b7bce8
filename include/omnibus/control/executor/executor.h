// Executor: runs the engine's steps on the workers it is given. No gRPC here: the simulator links it.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/step/memory_plan.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/contract/step/worker_base.h"

namespace omnibus {

// One thread (the engine's), except set_failure_callback's callback, which may come from any.
class Executor {
 public:
  virtual ~Executor() = default;

  // Plans memory, loads weights, allocates KV, joins the group of epoch 1. The plan that was carried out.
  virtual StatusOr<MemoryPlan> start() = 0;
  // prepare + agreement on the digest + commit. Inline executors return a ready future.
  virtual std::future<StatusOr<ModelRunnerOutput>> execute(SchedulerOutput plan) = 0;
  virtual int32_t max_concurrent_batches() const = 0;  // pipeline depth + asynchronous steps
  virtual Epoch epoch() const = 0;
  virtual void set_failure_callback(std::function<void(Status)> callback) = 0;
  virtual Status control(const ControlOp& op) = 0;
};

// The single device: one worker in this process, stepped inline on the caller's thread at depth 1.
std::unique_ptr<Executor> make_uniproc_executor(std::unique_ptr<WorkerBase> worker);
// The single device for asynchronous stepping: the same worker on a thread of its own, from start to end. It
// takes a second step while one runs; a third is refused with RESOURCE_EXHAUSTED.
std::unique_ptr<Executor> make_threaded_executor(std::unique_ptr<WorkerBase> worker);

}  // namespace omnibus
