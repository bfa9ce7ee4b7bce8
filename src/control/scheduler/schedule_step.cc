// Scheduler::schedule: from queues to the plan of one step.
#include <algorithm>
#include <utility>

#include "omnibus/base/common/mutant.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "fair_shares.h"
#include "sequence.h"
#include "step_budget.h"
#include "waiting_queue.h"

namespace omnibus {
namespace {

constexpr int32_t kLeastChunk = 16;  // tokens of a prompt that go beside decodes, however slow the machine

}  // namespace

SchedulerOutput Scheduler::schedule() {
  SchedulerOutput plan;
  plan.id = {config_.epoch, next_seq_};
  plan.numerics = config_.numerics;
  if (steps_in_flight() >= config_.max_steps_in_flight) return plan;
  plan.rows.reserve(running_.size());
  StepBudget budget(config_.max_num_batched_tokens);
  schedule_decodes(plan, budget);
  if (step_target_ns_ > 0 && !plan.rows.empty()) budget.limit_time(step_cost_, step_target_ns_);
  schedule_prompts(plan, budget);
  if (plan.rows.empty()) {
    // Not a step: what the workers must hear goes with the next one.
    finished_.insert(finished_.end(), plan.preempted.begin(), plan.preempted.end());
    plan.preempted.clear();
    return plan;
  }
  ++next_seq_;
  in_flight_.push_back(plan.id.seq);
  plan.finished.swap(finished_);
  return plan;
}

// While a token is being sampled the next one can be planned only if it is certain where it will stand, that
// there will be one, and that the worker can take it from the step in flight.
bool Scheduler::may_decode(const Sequence& s) const {
  if (!s.decoding()) return false;
  if (s.sampling == 0) return s.pending() > 0;
  const int32_t outputs = s.output_size() + s.sampling;
  return config_.from_step && s.one_token && outputs < s.request.sampling().max_tokens &&
         s.prompt_size() + outputs < config_.max_model_len;
}

// Without FromStep a request is in one step at a time: as many batches as may be in flight, of equal size.
size_t Scheduler::decode_rows_per_step() const {
  const auto depth = static_cast<size_t>(config_.max_steps_in_flight);
  if (config_.from_step || depth == 1) return running_.size();
  return (running_.size() + depth - 1) / depth;
}

// Drafts are a bonus: they leave a chunk for everyone behind, and none is past the last token that may come.
void Scheduler::cut_drafts(Sequence& s, int64_t budget) const {
  if (s.drafts.empty()) return;
  const int64_t room = std::min({budget - s.pending(), int64_t{config_.max_model_len} - s.known(),
                                 int64_t{s.request.sampling().max_tokens} - s.output_size() - 1});
  const auto spare = static_cast<size_t>(std::max<int64_t>(room, 0));
  if (s.drafts.size() > spare) s.drafts.resize(spare);
}

void Scheduler::schedule_decodes(SchedulerOutput& plan, StepBudget& budget) {
  const size_t rows = decode_rows_per_step();
  // Preemption takes from the back, so the requests before i stay where they are.
  for (size_t i = 0; i < running_.size() && plan.rows.size() < rows; ++i) {
    Sequence& s = *running_[i];
    if (!may_decode(s)) continue;
    cut_drafts(s, budget.tokens() - static_cast<int64_t>(running_.size() - i - 1) - (chunk_alignment_ - 1));
    const int32_t chunk = clip_chunk(s, budget.tokens());
    if (chunk == 0) continue;
    if (chunk < s.pending()) s.drafts.clear();
    auto blocks = grow(s, plan);
    if (!blocks) return;  // s was the last and had to go itself
    add_row(plan, s, chunk + static_cast<int32_t>(s.drafts.size()), std::move(*blocks));
    budget.take(plan.rows.back().n_tokens, plan.rows.back().base_computed);
  }
}

int32_t Scheduler::prefill_chunk(const Sequence& s, const StepBudget& budget) const {
  return clip_chunk(s, budget.room(s.planned, std::max(kLeastChunk, chunk_alignment_)));
}

std::vector<Scheduler::Sequence*> Scheduler::prefills_in_turn() const {
  std::vector<Sequence*> prefills;
  for (Sequence* s : running_)
    if (!s->decoding()) prefills.push_back(s);
  if (shares_->several())
    std::stable_sort(prefills.begin(), prefills.end(),
                     [this](const Sequence* a, const Sequence* b) { return waiting_->goes_before(*a, *b); });
  return prefills;
}

// Prompts under way and those that wait, in one order: a long one keeps nobody waiting who goes before it.
void Scheduler::schedule_prompts(SchedulerOutput& plan, StepBudget& budget) {
  const std::vector<Sequence*> prefills = prefills_in_turn();
  std::vector<Sequence*> left_out;
  std::vector<Sequence*> admitted;
  // What was just preempted has no room yet, and nothing may overtake it.
  bool may_admit = plan.preempted.empty();
  for (Sequence* s : prefills) {
    while (may_admit && !waiting_->empty() && waiting_->goes_before(*waiting_->next(), *s))
      may_admit = admit_next(plan, budget, admitted);
    const int32_t chunk = prefill_chunk(*s, budget);
    if (chunk == 0) {
      left_out.push_back(s);
      continue;
    }
    budget.take(chunk, s->planned);
    add_row(plan, *s, chunk, {});
  }
  while (may_admit) may_admit = admit_next(plan, budget, admitted);
  // First come, first served passes nobody over.
  const bool reorders = config_.policy != SchedulingPolicy::kFcfs || shares_->several();
  if (!reorders || admitted.empty()) return;
  count_left_out(prefills, left_out, admitted);
  waiting_->count_passed_over(admitted, config_.max_passed_over);
}

int32_t Scheduler::clip_chunk(const Sequence& s, int32_t budget) const {
  const int32_t pending = s.pending();
  if (pending <= budget || (OMNIBUS_MUTANT(13) && budget > 0)) return pending;
  const int32_t end = (s.planned + budget) / chunk_alignment_ * chunk_alignment_;
  return std::max(end - s.planned, 0);
}

void Scheduler::add_row(SchedulerOutput& plan, Sequence& s, int32_t n_tokens, GroupBlocks new_blocks) {
  ScheduledRow& row = plan.rows.emplace_back();
  row.id = s.request.id;
  row.new_blocks = std::move(new_blocks);
  row.base_computed = s.planned;
  row.n_tokens = n_tokens;
  row.drafts = std::exchange(s.drafts, {});
  row.samples = s.planned + n_tokens >= s.known() + s.sampling;
  if (s.sampling > 0) row.source = s.last_sample;
  s.planned += n_tokens;
  if (row.samples) {
    ++s.sampling;
    s.last_sample = {plan.id.seq, static_cast<int32_t>(plan.rows.size() - 1)};
    s.one_token = row.drafts.empty();
  }
  // A position is paid for once: not again when it is recomputed after a preemption.
  const int32_t fresh = s.planned - std::max(s.charged, row.base_computed);
  if (fresh <= 0) return;
  shares_->charge(s.tenant, fresh);
  s.charged = s.planned;
}

}  // namespace omnibus
