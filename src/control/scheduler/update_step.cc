// Scheduler::update_from_output: what a step's output means for each request.
#include <algorithm>
#include <string>
#include <utility>

#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"
#include "stop_rules.h"

namespace omnibus {
namespace {

Status check_row(const ScheduledRow& row, const RowOutput& output) {
  const std::string name = "row of request " + std::to_string(row.id);
  if (output.id != row.id)
    return absl::InternalError(name + " is answered for request " + std::to_string(output.id));
  if (output.status == RowStatus::kOk && row.samples == output.tokens.empty())
    return absl::InternalError(
        name + (row.samples ? " has no token" : " has a token before its prompt is computed"));
  return absl::OkStatus();
}

Status check_output(const SchedulerOutput& plan, const ModelRunnerOutput& output) {
  if (!(output.id == plan.id))
    return absl::InternalError("the output is of step " + std::to_string(output.id.seq) + ", not " +
                               std::to_string(plan.id.seq));
  if (output.rows.size() != plan.rows.size())
    return absl::InternalError("the output has " + std::to_string(output.rows.size()) + " rows, not " +
                               std::to_string(plan.rows.size()));
  for (size_t i = 0; i < plan.rows.size(); ++i)
    OMNIBUS_RETURN_IF_ERROR(check_row(plan.rows[i], output.rows[i]));
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<SequenceEvent>> Scheduler::update_from_output(const SchedulerOutput& plan,
                                                                   const ModelRunnerOutput& output) {
  OMNIBUS_RETURN_IF_ERROR(check_output(plan, output));
  std::vector<SequenceEvent> events;
  for (size_t i = 0; i < plan.rows.size(); ++i)
    if (auto event = take_row(plan, plan.rows[i], output.rows[i])) events.push_back(std::move(*event));
  return events;
}

std::optional<SequenceEvent> Scheduler::take_row(const SchedulerOutput& plan, const ScheduledRow& row,
                                                 const RowOutput& output) {
  const auto it = sequences_.find(row.id);
  if (it == sequences_.end() || plan.id.seq < it->second->admitted_seq)
    return std::nullopt;  // aborted or preempted since
  Sequence& s = *it->second;
  if (output.status == RowStatus::kNumericError)
    return abort(row.id, FinishReason::kError,
                 absl::InternalError("the model produced a number that is not finite for this request"));
  if (output.status == RowStatus::kNoCandidate)
    return abort(
        row.id, FinishReason::kError,
        invalid_field("allowed_token_ids",
                      "allowed_token_ids, bad_words and the tokens banned until min_tokens leave no token to "
                      "draw"));
  take_prompt_logprobs(s, row, output);
  if (output.tokens.empty()) return std::nullopt;

  // KV of rejected drafts is void.
  const int32_t rejected =
      static_cast<int32_t>(row.drafts.size()) - (static_cast<int32_t>(output.tokens.size()) - 1);
  s.planned -= std::max(rejected, 0);
  s.drafts = output.next_drafts;

  SequenceEvent event = event_of(s);
  if (s.output.empty()) {
    s.first_token_ns = event.time_ns;
    event.timeline.first_token_ns = event.time_ns;
    event.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
  }
  take_tokens(s, output, event);
  if (event.finish_reason) end(s, event);
  return event;
}

void Scheduler::take_tokens(Sequence& s, const RowOutput& output, SequenceEvent& event) {
  for (size_t i = 0; i < output.tokens.size(); ++i) {
    const TokenId token = output.tokens[i];
    s.output.push_back(token);
    event.tokens.push_back(token);
    if (i < output.logprobs.size()) event.logprobs.push_back(output.logprobs[i]);
    const auto stop =
        judge_token(s.request, token, static_cast<int32_t>(s.output.size()), config_.max_model_len);
    if (!stop) continue;
    event.finish_reason = stop->reason;
    event.stop_cause = stop->cause;
    return;
  }
}

// Chunks arrive in order, but a recomputed prompt passes the same positions again: each counts once.
void Scheduler::take_prompt_logprobs(Sequence& s, const ScheduledRow& row, const RowOutput& output) {
  if (!s.output.empty()) return;
  for (size_t i = 0; i < output.prompt_logprobs.size(); ++i) {
    const size_t position = static_cast<size_t>(row.base_computed) + 1 + i;
    if (position == s.prompt_logprobs.size() + 1) s.prompt_logprobs.push_back(output.prompt_logprobs[i]);
  }
}

}  // namespace omnibus
