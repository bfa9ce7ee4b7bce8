#include "stepped_worker.h"

#include <exception>
#include <string>
#include <utility>

namespace omnibus {
namespace {

template <typename Call>
auto guarded(const char* what, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    return absl::InternalError(std::string(what) + " failed: " + e.what());
  }
}

}  // namespace

StatusOr<MemoryPlan> SteppedWorker::start() {
  return guarded("starting the worker", [&] { return start_worker(); });
}

StatusOr<MemoryPlan> SteppedWorker::start_worker() {
  OMNIBUS_RETURN_IF_ERROR(worker_->init());
  OMNIBUS_ASSIGN_OR_RETURN(MemoryPlan plan, worker_->capacity());
  OMNIBUS_RETURN_IF_ERROR(worker_->load());
  OMNIBUS_RETURN_IF_ERROR(worker_->allocate_kv(plan.kv));
  OMNIBUS_RETURN_IF_ERROR(worker_->join({.epoch = kEpoch, .ranks = {0}, .comm_ids = {}}));
  digest_ = 0;
  return plan;
}

StatusOr<ModelRunnerOutput> SteppedWorker::step(SchedulerOutput plan) {
  if (!broken_.ok()) return broken_;
  StatusOr<ModelRunnerOutput> result = guarded("the step", [&] { return run(std::move(plan)); });
  // The worker's mirror is unknown after a failure: no step may follow.
  if (!result.ok()) broken_ = result.status();
  return result;
}

StatusOr<ModelRunnerOutput> SteppedWorker::run(SchedulerOutput plan) {
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

Status SteppedWorker::control(const ControlOp& op) {
  return guarded("the control operation", [&] { return worker_->control(op); });
}

}  // namespace omnibus
