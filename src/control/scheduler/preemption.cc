// Blocks for the next token, at the cost of others where need be.
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/mutant.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"
#include "waiting_queue.h"

namespace omnibus {

// Blocks for all known tokens and the drafts, at the cost of drafts first and of requests behind then;
// nullopt when the request itself was preempted.
std::optional<GroupBlocks> Scheduler::grow(Sequence& s, SchedulerOutput& plan) {
  const RequestId id = s.request.id;
  while (true) {
    const SlotDemand demand{
        .n_computed = s.planned, .n_new = s.pending(), .n_lookahead = static_cast<int32_t>(s.drafts.size())};
    if (demand.tokens() <= s.slots) return GroupBlocks();
    if (auto blocks = kv_->allocate_slots(id, demand)) {
      s.slots = kv_->slots_of(id);
      return blocks;
    }
    if (!s.drafts.empty()) {
      s.drafts.clear();
      continue;
    }
    OMNIBUS_CHECK(running_.size() > 1, "a request that runs alone always fits");
    preempt_last(s, plan);
    if (!s.on_worker()) return std::nullopt;
  }
}

// Rows of the victim that are in flight write to its blocks before any later step does, so the blocks may be
// given away at once; what those rows sample is ignored and sampled again.
void Scheduler::preempt_last(const Sequence& needy, SchedulerOutput& plan) {
  const auto position = OMNIBUS_MUTANT(12) ? running_.begin() : running_.end() - 1;
  Sequence& victim = **position;
  running_.erase(position);
  kv_->free(victim.request.id);
  plan.preempted.push_back(victim.request.id);
  victim.status = RequestStatus::kPreempted;
  victim.admitted_seq = kNotAdmitted;
  victim.planned = 0;
  victim.computed = 0;
  victim.published = 0;
  victim.slots = 0;
  victim.sampling = 0;
  victim.drafts.clear();
  ++victim.preemptions;
  ++num_preemptions_;
  // Making room for one that came later is being passed over, too: without this, a stream of requests of
  // higher priority could have one of low priority preempted for ever.
  if (victim.place.arrival < needy.place.arrival && ++victim.passed_over >= config_.max_passed_over)
    victim.place = {.in_turn = false, .priority = 0, .arrival = victim.place.arrival};
  if (OMNIBUS_MUTANT(11)) victim.place.arrival = next_arrival_++;
  waiting_->push_preempted(victim);
}

}  // namespace omnibus
