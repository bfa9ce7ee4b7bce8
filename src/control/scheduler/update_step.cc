// Scheduler::update_from_output: what a step's output means for each request.
#include <algorithm>
#include <string>
#include <utility>

#include "omnibus/base/common/mutant.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"
#include "stop_rules.h"

namespace omnibus {
namespace {

Status bad_row(const ScheduledRow& row, const std::string& what) {
  return absl::InternalError("row of request " + std::to_string(row.id) + " " + what);
}

Status check_row(const ScheduledRow& row, const RowOutput& output, bool from_step) {
  if (output.id != row.id) return bad_row(row, "is answered for request " + std::to_string(output.id));
  if (output.status == RowStatus::kOk && row.samples == output.tokens.empty())
    return bad_row(row, row.samples ? "has no token" : "has a token before its prompt is computed");
  // The next step may stand on it that a row without drafts gives one token.
  if (from_step && output.tokens.size() > row.drafts.size() + 1)
    return bad_row(row, "has " + std::to_string(output.tokens.size()) + " tokens for " +
                            std::to_string(row.drafts.size()) + " drafts");
  return absl::OkStatus();
}

}  // namespace

Status Scheduler::check_output(const SchedulerOutput& plan, const ModelRunnerOutput& output) const {
  if (!(output.id == plan.id))
    return absl::InternalError("the output is of step " + std::to_string(output.id.seq) + ", not " +
                               std::to_string(plan.id.seq));
  const bool is_oldest = !in_flight_.empty() && plan.id == StepId{config_.epoch, in_flight_.front()};
  if (!is_oldest && !OMNIBUS_MUTANT(8))
    return absl::InternalError("step " + std::to_string(plan.id.seq) + " is not the oldest one in flight");
  if (output.rows.size() != plan.rows.size())
    return absl::InternalError("the output has " + std::to_string(output.rows.size()) + " rows, not " +
                               std::to_string(plan.rows.size()));
  for (size_t i = 0; i < plan.rows.size(); ++i)
    OMNIBUS_RETURN_IF_ERROR(check_row(plan.rows[i], output.rows[i], config_.from_step));
  return absl::OkStatus();
}

StatusOr<std::vector<SequenceEvent>> Scheduler::update_from_output(const SchedulerOutput& plan,
                                                                   const ModelRunnerOutput& output) {
  OMNIBUS_RETURN_IF_ERROR(check_output(plan, output));
  if (!in_flight_.empty() && in_flight_.front() == plan.id.seq) in_flight_.pop_front();
  const MonotonicNs now = clock_->now_ns();
  std::vector<SequenceEvent> events;
  events.reserve(plan.rows.size());
  size_t near = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    Sequence* s = find(plan.rows[i].id, near);
    if (s == nullptr || plan.id.seq < s->admitted_seq) continue;  // ended or preempted since
    take_row(*s, plan.rows[i], output.rows[i], now, events);
  }
  return events;
}

// Rows mostly come in the order of running_, so the next is found beside the last.
Scheduler::Sequence* Scheduler::find(RequestId id, size_t& near) const {
  for (size_t i = near; i < std::min(near + 2, running_.size()); ++i) {
    if (running_[i]->request.id != id) continue;
    near = i;
    return running_[i];
  }
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second.get();
}

void Scheduler::fail_row(Sequence& s, RowStatus status, std::vector<SequenceEvent>& events) {
  Status why =
      status == RowStatus::kNumericError
          ? absl::InternalError("the model produced a number that is not finite for this request")
          : invalid_field("allowed_token_ids",
                          "allowed_token_ids, bad_words and the tokens banned until min_tokens leave "
                          "no token to draw");
  events.push_back(*abort(s.request.id, FinishReason::kError, std::move(why)));
}

void Scheduler::take_row(Sequence& s, const ScheduledRow& row, const RowOutput& output, MonotonicNs now,
                         std::vector<SequenceEvent>& events) {
  if (output.status != RowStatus::kOk) return fail_row(s, output.status, events);
  take_prompt_logprobs(s, row, output);
  const auto n_tokens = static_cast<int32_t>(output.tokens.size());
  // KV of rejected drafts is void.
  const int32_t rejected =
      row.samples ? std::max(static_cast<int32_t>(row.drafts.size()) - n_tokens + 1, 0) : 0;
  s.planned -= rejected;
  s.computed = row.base_computed + row.n_tokens - rejected;
  if (!row.samples) return publish(s);
  --s.sampling;
  // Drafts follow the last token; if the next one is being sampled already, they come too late.
  if (s.sampling == 0) s.drafts = output.next_drafts;

  SequenceEvent& event = events.emplace_back();
  start_event(s, now, event);
  if (event.first_index == 0) {
    s.first_token_ns = event.time_ns;
    event.timeline.first_token_ns = event.time_ns;
    event.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
  }
  if (OMNIBUS_MUTANT(9) && row.base_computed + row.n_tokens == s.prefill_end)
    event.tokens.assign(s.output().begin(), s.output().end());
  take_tokens(s, output, event);
  publish(s);
  if (event.finish_reason) end(s, event);
}

void Scheduler::publish(Sequence& s) {
  if (!config_.prefix_caching) return;
  const int32_t unit = kv_->tokens_per_key();
  // Drafts that were accepted behind a token that ends the request are computed, but not known.
  const int32_t valid = std::min(s.computed + OMNIBUS_MUTANT(6), s.known());
  if (valid - s.published < unit) return;
  s.published = valid / unit * unit;
  extend_keys(s, s.published);
  kv_->publish(s.request.id, {s.tokens, s.keys}, s.published);
}

void Scheduler::take_tokens(Sequence& s, const RowOutput& output, SequenceEvent& event) {
  for (size_t i = 0; i < output.tokens.size(); ++i) {
    const TokenId token = output.tokens[i];
    s.tokens.push_back(token);
    event.tokens.push_back(token);
    if (i < output.logprobs.size()) event.logprobs.push_back(output.logprobs[i]);
    const auto stop = judge_token(s.request, token, s.output_size(), config_.max_model_len);
    if (!stop) continue;
    event.finish_reason = stop->reason;
    event.stop_cause = stop->cause;
    return;
  }
}

// Chunks arrive in order, but a recomputed prompt passes the same positions again: each counts once.
void Scheduler::take_prompt_logprobs(Sequence& s, const ScheduledRow& row, const RowOutput& output) {
  if (s.output_size() > 0) return;
  for (size_t i = 0; i < output.prompt_logprobs.size(); ++i) {
    const size_t position = static_cast<size_t>(row.base_computed) + 1 + i;
    if (position == s.prompt_logprobs.size() + 1) s.prompt_logprobs.push_back(output.prompt_logprobs[i]);
  }
}

}  // namespace omnibus
