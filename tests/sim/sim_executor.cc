#include "sim_executor.h"

#include <algorithm>
#include <utility>

namespace omnibus::sim {
namespace {

constexpr int64_t kSlowest = kSecond;  // of a slow step, which is no fault yet

}  // namespace

StatusOr<MemoryPlan> SimExecutor::start() {
  MemoryPlan plan;
  plan.kv = scenario_.kv;
  return plan;
}

int64_t SimExecutor::duration_of(const SchedulerOutput& plan, Step& step) {
  const WorkerPlan& w = scenario_.worker;
  int64_t ns = w.step_ns + w.token_ns * plan.total_tokens();
  ns += rng_.between(0, ns / 2);
  if (rng_.chance(scenario_.faults.slow_step))
    ns = std::max(ns, std::min(ns * rng_.between(2, 20), kSlowest));
  if (steps_ == scenario_.faults.stall_at) {
    ns += scenario_.faults.stall_ns;
    step.is_stalled = true;
  }
  return ns;
}

std::future<StatusOr<ModelRunnerOutput>> SimExecutor::execute(SchedulerOutput plan) {
  hooks_.on_plan(plan);
  Step step;
  step.launched_ns = clock_->now_ns();
  step.output = worker_->run(plan);
  step.plan = std::move(plan);
  auto future = step.promise.get_future();
  if (!in_virtual_time_) {
    clock_->advance_ns(scenario_.worker.step_ns);
    if (step.output.ok()) step.output->duration_ns = scenario_.worker.step_ns;
    step.promise.set_value(std::move(step.output));
    return future;
  }
  ++steps_;
  if (scenario_.faults.failure_at != 0 && steps_ >= scenario_.faults.failure_at)
    step.output = absl::InternalError("the simulated worker is gone");
  busy_until_ = std::max(busy_until_, clock_->now_ns()) + duration_of(step.plan, step);
  const StepId id = step.plan.id;
  in_flight_.push_back(std::move(step));
  heap_->post(busy_until_, "reply", [this, id] {
    if (!in_flight_.empty() && in_flight_.front().plan.id == id) hooks_.on_reply();
  });
  return future;
}

SimExecutor::Step SimExecutor::answer_oldest() {
  Step step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const MonotonicNs began = std::max(step.launched_ns, answered_ns_);  // a step runs when the last is done
  answered_ns_ = clock_->now_ns();
  if (step.output.ok()) step.output->duration_ns = answered_ns_ - began;
  step.promise.set_value(step.output);
  return step;
}

}  // namespace omnibus::sim
