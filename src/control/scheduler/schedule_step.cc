// Scheduler::schedule: from queues to the plan of one step.
#include <algorithm>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"

namespace omnibus {

SchedulerOutput Scheduler::schedule() {
  SchedulerOutput plan;
  plan.id = {config_.epoch, next_seq_};
  plan.numerics = config_.numerics;
  int32_t budget = config_.max_num_batched_tokens;
  schedule_decodes(plan, budget);
  schedule_prefills(plan, budget);
  // What was just preempted has no room yet, and nothing may overtake it.
  if (plan.preempted.empty()) admit_waiting(plan, budget);
  if (plan.rows.empty()) {
    // Not a step: what the workers must hear goes with the next one.
    finished_.insert(finished_.end(), plan.preempted.begin(), plan.preempted.end());
    plan.preempted.clear();
    return plan;
  }
  ++next_seq_;
  plan.finished.swap(finished_);
  return plan;
}

void Scheduler::schedule_decodes(SchedulerOutput& plan, int32_t& budget) {
  // Preemption takes from the back, so the requests before i stay where they are.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i];
    if (!s.decoding() || s.pending() == 0) continue;
    // Drafts are a bonus: they leave a chunk for everyone behind.
    const int64_t reserve = static_cast<int64_t>(running_.size() - i - 1) + chunk_alignment_ - 1;
    const int64_t room = std::min<int64_t>(budget - s.pending() - reserve, config_.max_model_len - s.known());
    const int64_t spare = std::max<int64_t>(room, 0);
    if (static_cast<int64_t>(s.drafts.size()) > spare) s.drafts.resize(static_cast<size_t>(spare));
    const int32_t chunk = clip_chunk(s, budget);
    if (chunk == 0) continue;
    if (chunk < s.pending()) s.drafts.clear();
    auto blocks = grow(s, plan);
    if (!blocks) return;  // s was the youngest and had to go itself
    add_row(plan, s, chunk + static_cast<int32_t>(s.drafts.size()), std::move(*blocks));
    budget -= plan.rows.back().n_tokens;
  }
}

// Blocks for all known tokens and the drafts, at the cost of drafts first and of younger requests then;
// nullopt when the request itself was preempted.
std::optional<std::vector<std::vector<BlockId>>> Scheduler::grow(Sequence& s, SchedulerOutput& plan) {
  const RequestId id = s.request.id;
  while (true) {
    const SlotDemand demand{
        .n_computed = s.planned, .n_new = s.pending(), .n_lookahead = static_cast<int32_t>(s.drafts.size())};
    if (auto blocks = kv_->allocate_slots(id, demand)) return blocks;
    if (!s.drafts.empty()) {
      s.drafts.clear();
      continue;
    }
    const bool self = running_.back() == &s;
    OMNIBUS_CHECK(running_.size() > 1 || !self, "a request that runs alone always fits");
    preempt_youngest(plan);
    if (self) return std::nullopt;
  }
}

void Scheduler::preempt_youngest(SchedulerOutput& plan) {
  Sequence& victim = *running_.back();
  running_.pop_back();
  kv_->free(victim.request.id);
  plan.preempted.push_back(victim.request.id);
  victim.status = RequestStatus::kPreempted;
  victim.admitted_seq = kNotAdmitted;
  victim.planned = 0;
  victim.drafts.clear();
  ++victim.preemptions;
  ++num_preemptions_;
  waiting_.push_front(&victim);
}

void Scheduler::schedule_prefills(SchedulerOutput& plan, int32_t& budget) {
  for (Sequence* s : running_) {
    if (s->decoding()) continue;
    const int32_t chunk = clip_chunk(*s, budget);
    if (chunk == 0) continue;
    add_row(plan, *s, chunk, std::vector<std::vector<BlockId>>(num_groups_));
    budget -= chunk;
  }
}

void Scheduler::admit_waiting(SchedulerOutput& plan, int32_t& budget) {
  while (!waiting_.empty() && num_running() < config_.max_num_seqs) {
    Sequence& s = *waiting_.front();
    const int32_t chunk = clip_chunk(s, budget);
    if (chunk == 0) return;
    auto blocks = kv_->allocate_slots(s.request.id, {.n_new = s.known()});
    if (!blocks) return;
    waiting_.pop_front();
    running_.push_back(&s);
    s.status = RequestStatus::kRunning;
    s.admitted_seq = plan.id.seq;
    s.prefill_end = s.known();
    if (s.first_scheduled_ns == 0) s.first_scheduled_ns = clock_->now_ns();
    plan.new_requests.push_back({s.request, s.output});
    add_row(plan, s, chunk, std::move(*blocks));
    budget -= chunk;
  }
}

int32_t Scheduler::clip_chunk(const Sequence& s, int32_t budget) const {
  const int32_t pending = s.pending();
  if (pending <= budget) return pending;
  const int32_t end = (s.planned + budget) / chunk_alignment_ * chunk_alignment_;
  return std::max(end - s.planned, 0);
}

void Scheduler::add_row(SchedulerOutput& plan, Sequence& s, int32_t n_tokens,
                        std::vector<std::vector<BlockId>> new_blocks) {
  ScheduledRow row;
  row.id = s.request.id;
  row.new_blocks = std::move(new_blocks);
  row.base_computed = s.planned;
  row.n_tokens = n_tokens;
  row.drafts = std::exchange(s.drafts, {});
  row.samples = s.planned + n_tokens >= s.known();
  s.planned += n_tokens;
  plan.rows.push_back(std::move(row));
}

}  // namespace omnibus
