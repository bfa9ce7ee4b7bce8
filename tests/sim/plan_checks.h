// PlanChecks: judges the order of things, plan by plan.
//   I5   a cancelled request gets no row any more
//   I7   nobody is passed over in more than K steps, and with first come, first served nobody at all
//   I12  with first come, first served whoever came last is preempted first; and always the run gets on: no
//   more
//        than a bound of steps in which nobody gets further than ever before
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "omnibus/contract/step/scheduler_output.h"

#include "sim/clients.h"
#include "sim/scenario.h"
#include "sim/sim_worker.h"
#include "sim/verdict.h"

namespace omnibus::sim {

class PlanChecks {
 public:
  PlanChecks(const Scenario& scenario, const Clock* clock, const Clients* clients, Verdict* verdict)
      : scenario_(scenario), clock_(clock), clients_(clients), verdict_(verdict) {}

  // `worker`: before the plan is run.
  void take(const SchedulerOutput& plan, const SimWorker& worker);
  // The engine has taken in the cancel of this choice.
  void cancel_was_handled(RequestId id) { cancelled_.insert(id); }

 private:
  void judge_rows(const SchedulerOutput& plan);
  void judge_passed_over(const SchedulerOutput& plan, const SimWorker& worker);
  void judge_preempted(const SchedulerOutput& plan, const SimWorker& worker);
  void judge_progress(const SchedulerOutput& plan, const SimWorker& worker);
  // Is it there, and did its end not come in this turn?
  bool is_alive(const Choice& choice) const;
  bool serves_in_order() const;

  const Scenario& scenario_;
  const Clock* const clock_;
  const Clients* const clients_;
  Verdict* const verdict_;
  std::set<RequestId> cancelled_;
  std::map<RequestId, int32_t> passed_over_;
  std::map<RequestId, int64_t> furthest_;  // tokens computed, ever
  int64_t steps_without_progress_ = 0;
};

}  // namespace omnibus::sim
