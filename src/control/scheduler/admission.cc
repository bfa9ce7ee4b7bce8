// Who of the waiting is let in, and what of their prompts need not be computed.
#include <algorithm>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/mutant.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"
#include "step_budget.h"
#include "waiting_queue.h"

namespace omnibus {

void Scheduler::count_prefix_hit(Sequence& s, int32_t n_tokens) {
  if (!config_.prefix_caching || s.request.sampling().prompt_logprobs) return;
  s.cached_tokens = n_tokens;
  prefix_cache_queries_ += s.prompt_size();
  prefix_cache_hits_ += n_tokens;
}

// False when nobody else is let in with this step.
bool Scheduler::admit_next(SchedulerOutput& plan, StepBudget& budget, std::vector<Sequence*>& admitted) {
  if (num_running() >= config_.max_num_seqs || budget.tokens() <= 0) return false;
  Sequence* s = waiting_->next();
  if (s == nullptr || !admit(*s, plan, budget)) return false;
  admitted.push_back(s);
  return true;
}

// A prompt under way that got nothing in a step which let in a later one was passed over like one that waits
// (WaitingQueue::count_passed_over): a stream of others that go first does not keep it from ending.
void Scheduler::count_left_out(std::span<Sequence* const> prefills, std::span<Sequence* const> left_out,
                               std::span<Sequence* const> admitted) {
  const auto is_first_of_tenant = [&](const Sequence* s) {
    return *std::find_if(prefills.begin(), prefills.end(),
                         [s](const Sequence* other) { return other->tenant == s->tenant; }) == s;
  };
  bool any_due = false;
  for (Sequence* s : left_out) {
    const bool is_first = is_first_of_tenant(s);
    const auto passes = [&](const Sequence* a) {
      return a->place.arrival > s->place.arrival && (is_first || a->tenant == s->tenant);
    };
    if (!s->place.in_turn || std::none_of(admitted.begin(), admitted.end(), passes) ||
        ++s->passed_over < config_.max_passed_over)
      continue;
    s->place = {.in_turn = false, .priority = 0, .arrival = s->place.arrival};
    any_due = true;
  }
  if (!any_due) return;
  std::sort(running_.begin(), running_.end(),
            [](const Sequence* a, const Sequence* b) { return a->place < b->place; });
}

// False, and nothing has changed, when budget or blocks do not reach.
bool Scheduler::admit(Sequence& s, SchedulerOutput& plan, StepBudget& budget) {
  if (kv_->gains() < s.retry_at) return false;  // as in the round before: spare the look-up
  const ComputedBlocks computed = find_prefix(s);
  s.planned = computed.n_tokens;
  const int32_t chunk = prefill_chunk(s, budget);
  const SlotDemand demand{.n_computed = computed.n_tokens, .n_new = s.pending()};
  auto blocks = chunk > 0 ? kv_->allocate_slots(s.request.id, demand, computed) : std::nullopt;
  if (!blocks) {
    if (chunk > 0) s.retry_at = kv_->retry_at();
    s.planned = 0;
    return false;
  }
  waiting_->erase(s);
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &s,
                                   [](const Sequence* a, const Sequence* b) { return a->place < b->place; }),
                  &s);
  s.status = RequestStatus::kRunning;
  s.admitted_seq = plan.id.seq;
  s.prefill_end = s.known();
  s.computed = computed.n_tokens;
  s.published = computed.n_tokens;
  s.slots = kv_->slots_of(s.request.id);
  if (s.first_scheduled_ns == 0) {
    s.first_scheduled_ns = clock_->now_ns();
    count_prefix_hit(s, computed.n_tokens);
  }
  const int lost = OMNIBUS_MUTANT(10) && s.output_size() > 0 ? 1 : 0;
  plan.new_requests.push_back({s.request, {s.output().begin(), s.output().end() - lost}});
  budget.take(chunk, s.planned);
  add_row(plan, s, chunk, std::move(*blocks));
  return true;
}

}  // namespace omnibus
