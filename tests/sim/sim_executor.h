// SimExecutor: the Executor of a simulated run. Steps run one after the other in virtual time; their replies
// come as events of the heap, late or never if the seed says so.
#pragma once

#include <deque>
#include <functional>
#include <future>

#include "omnibus/base/common/clock.h"
#include "omnibus/control/executor/executor.h"

#include "sim/event_heap.h"
#include "sim/scenario.h"
#include "sim/sim_rng.h"
#include "sim/sim_worker.h"

namespace omnibus::sim {

class SimExecutor final : public Executor {
 public:
  struct Hooks {
    std::function<void(const SchedulerOutput&)> on_plan;  // before it runs
    std::function<void()> on_reply;                       // the oldest step in flight is done
  };
  SimExecutor(const Scenario& scenario, ManualClock* clock, EventHeap* heap, SimWorker* worker)
      : scenario_(scenario),
        rng_(SimRng(splitmix64(scenario.seed, 2)).fork("executor")),
        clock_(clock),
        heap_(heap),
        worker_(worker) {}
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }
  // Until then steps are done at once: nobody posts events during the engine's first steps.
  void begin_virtual_time() { in_virtual_time_ = true; }

  StatusOr<MemoryPlan> start() override;
  std::future<StatusOr<ModelRunnerOutput>> execute(SchedulerOutput plan) override;
  int32_t max_concurrent_batches() const override { return scenario_.scheduler.max_steps_in_flight; }
  Epoch epoch() const override { return scenario_.scheduler.epoch; }
  void set_failure_callback(std::function<void(Status)>) override {}
  Status control(const ControlOp&) override { return absl::OkStatus(); }

  struct Step {
    SchedulerOutput plan;
    StatusOr<ModelRunnerOutput> output;
    std::promise<StatusOr<ModelRunnerOutput>> promise;
    MonotonicNs launched_ns = 0;
    bool is_stalled = false;
  };
  const std::deque<Step>& in_flight() const { return in_flight_; }
  // Resolves the oldest step's future. What was answered, to answer it twice.
  Step answer_oldest();
  // The engine has given up; replies to come mean nothing.
  void forget_all() { in_flight_.clear(); }

 private:
  int64_t duration_of(const SchedulerOutput& plan, Step& step);

  const Scenario& scenario_;
  SimRng rng_;
  ManualClock* const clock_;
  EventHeap* const heap_;
  SimWorker* const worker_;
  Hooks hooks_;
  bool in_virtual_time_ = false;
  std::deque<Step> in_flight_;
  MonotonicNs busy_until_ = 0;
  MonotonicNs answered_ns_ = 0;  // the last
  int64_t steps_ = 0;
};

}  // namespace omnibus::sim
