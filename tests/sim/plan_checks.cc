#include "plan_checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

namespace omnibus::sim {
namespace {

// Steps in which preempted prompts may be computed again before somebody gets further: all running requests'
// tokens at the smallest budget, and then some.
constexpr int64_t kStepsWithoutProgress = 600;

bool contains(const std::vector<RequestId>& ids, RequestId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

void PlanChecks::take(const SchedulerOutput& plan, const SimWorker& worker) {
  judge_rows(plan);
  judge_passed_over(plan, worker);
  judge_preempted(plan, worker);
  judge_progress(plan, worker);
}

bool PlanChecks::is_alive(const Choice& choice) const {
  const auto& deadline = choice.request.deadline;
  return !choice.is_ended && cancelled_.count(choice.request.id) == 0 &&
         !(deadline && *deadline <= clock_->now_ns());
}

bool PlanChecks::serves_in_order() const {
  return scenario_.scheduler.policy == SchedulingPolicy::kFcfs && !scenario_.scheduler.fair_sharing.enabled;
}

void PlanChecks::judge_rows(const SchedulerOutput& plan) {
  for (const ScheduledRow& row : plan.rows)
    if (cancelled_.count(row.id) != 0)
      verdict_->fail(
          "I5", fmt::format("step {} has a row of request {}, which was cancelled", plan.id.seq, row.id));
}

void PlanChecks::judge_passed_over(const SchedulerOutput& plan, const SimWorker& worker) {
  if (plan.new_requests.empty()) return;
  RequestId last_admitted = 0;
  std::map<std::string, RequestId> last_of_tenant;
  for (const NewRequestData& data : plan.new_requests) {
    RequestId& last = last_of_tenant[data.request.tenant];
    last = std::max(last, data.request.id);
    last_admitted = std::max(last_admitted, data.request.id);
    passed_over_.erase(data.request.id);
  }
  const SchedulingPolicy policy = scenario_.scheduler.policy;
  const bool shares = scenario_.scheduler.fair_sharing.enabled;
  std::set<std::string> waiting_tenants;
  const int32_t limit = serves_in_order() ? 0 : scenario_.scheduler.max_passed_over;
  for (RequestId id : clients_->open()) {
    if (id >= last_admitted) return;
    const Choice& choice = clients_->choices().at(id);
    const bool runs =
        worker.mirrors().count(id) != 0 && !contains(plan.preempted, id) && !contains(plan.finished, id);
    const bool is_new = std::any_of(plan.new_requests.begin(), plan.new_requests.end(),
                                    [&](const auto& data) { return data.request.id == id; });
    if (!choice.is_handled || runs || is_new || !is_alive(choice)) continue;
    // Under fair sharing other tenants pass over only who is next of its own (docs/scheduling.md).
    const std::string& tenant = choice.request.tenant;
    const bool is_next = waiting_tenants.insert(tenant).second && policy == SchedulingPolicy::kFcfs;
    if (shares && !is_next && id >= last_of_tenant[tenant]) continue;
    if (++passed_over_[id] > limit)
      verdict_->fail("I7",
                     fmt::format("request {} is passed over for the {}. time in step {} (request {} was "
                                 "admitted); the limit is {}",
                                 id, passed_over_[id], plan.id.seq, last_admitted, limit));
  }
}

// Whoever is preempted without having arrived last makes room for one that is behind it. With other policies
// the order changes with who was passed over; there the bound on steps without progress must do.
void PlanChecks::judge_preempted(const SchedulerOutput& plan, const SimWorker& worker) {
  if (!serves_in_order()) return;
  for (RequestId victim : plan.preempted)
    for (const ScheduledRow& row : plan.rows)
      if (row.id > victim && clients_->is_open(victim) && worker.mirrors().count(row.id) != 0)
        verdict_->fail("I12",
                       fmt::format("step {} preempts request {}, but request {}, which came later, runs",
                                   plan.id.seq, victim, row.id));
}

void PlanChecks::judge_progress(const SchedulerOutput& plan, const SimWorker& worker) {
  ++steps_without_progress_;
  for (const ScheduledRow& row : plan.rows) {
    int64_t& furthest = furthest_[row.id];
    const int64_t end = int64_t{row.base_computed} + row.n_tokens - static_cast<int64_t>(row.drafts.size());
    if (end <= furthest) continue;
    furthest = end;
    steps_without_progress_ = 0;
  }
  if (steps_without_progress_ > kStepsWithoutProgress)
    verdict_->fail("I12", fmt::format("{} steps in which no request got further than ever before ({} run)",
                                      steps_without_progress_, worker.mirrors().size()));
}

}  // namespace omnibus::sim
