#include "stepped_worker.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace omnibus {
namespace {

Status failed(const char* what, const std::exception& e) {
  try {
    return absl::InternalError(std::string(what) + " failed: " + e.what());
  } catch (const std::exception&) {
    return {StatusCode::kInternal, ""};  // needs no memory, which is what is missing
  }
}

template <typename Call>
auto guarded(const char* what, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    return failed(what, e);
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
  const MonotonicNs began = clock_.now_ns();
  StatusOr<ModelRunnerOutput> result = guarded("the step", [&] { return run(std::move(plan)); });
  if (result.ok()) {
    result->duration_ns = std::max<int64_t>(clock_.now_ns() - began, 1);
  } else {
    broken_ = result.status();  // the worker's mirror is unknown: no step may follow
  }
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
