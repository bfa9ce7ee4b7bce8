#include "model_runner.h"

#include <algorithm>
#include <array>

#include "omnibus/base/common/log.h"
#include "omnibus/compute/sampler/sampler.h"

namespace omnibus {
namespace {

SampledLogprobs to_logprobs(DrawnLogprobs drawn) { return {drawn.sampled, std::move(drawn.top), 0}; }

void fail_row(RowOutput& out, RowStatus status) {
  out.status = status;
  out.tokens.clear();
  out.logprobs.clear();
  out.prompt_logprobs.clear();
}

}  // namespace

StatusOr<ModelRunner> ModelRunner::create(ModelInstance& instance, std::span<const KVGroupSpec> groups) {
  OMNIBUS_ASSIGN_OR_RETURN(StepArrays arrays, StepArrays::create(groups, instance.spec().max_rows));
  ModelRunner runner(instance, std::move(arrays));
  const auto turn = static_cast<size_t>(instance.spec().max_head_rows);
  runner.job_rows_.resize(turn);
  runner.requests_.resize(turn);
  runner.heads_.resize(turn);
  runner.row_counts_.resize(turn);
  runner.banned_.resize(turn);
  return runner;
}

// Rows of logits in plan order; within a row by position, so that drafts are judged in order.
void ModelRunner::collect_jobs(const SchedulerOutput& plan, std::span<RequestState* const> states) {
  jobs_.clear();
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const ScheduledRow& row = plan.rows[i];
    const RequestState& state = *states[i];
    const int32_t first = arrays_.first_row(i);
    if (state.sampling.prompt_logprobs) {
      const int32_t end = std::min(row.base_computed + row.n_tokens, state.prompt_length - 1);
      for (int32_t p = row.base_computed; p < end; ++p)
        jobs_.push_back({i, first + p - row.base_computed, p + 1, 0, true});
    }
    if (!row.samples) continue;
    const auto drafts = static_cast<int32_t>(row.drafts.size());
    for (int32_t d = 0; d <= drafts; ++d)
      jobs_.push_back({i, first + row.n_tokens - 1 - drafts + d, state.known() + d, d, false});
  }
}

// EOS and stop ids before min_tokens, and what would complete a bad sequence.
void ModelRunner::fill_banned(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                              std::vector<int32_t>& banned) const {
  banned.clear();
  if (state.output_length() + job.draft < state.sampling.min_tokens) banned = state.stop_ids;
  if (state.sampling.bad_sequences.empty()) return;
  const auto output = std::span(state.tokens).subspan(static_cast<size_t>(state.prompt_length));
  if (job.draft == 0) return ban_bad_sequences(state.sampling, output, banned);
  std::vector<TokenId> with_drafts(output.begin(), output.end());
  with_drafts.insert(with_drafts.end(), row.drafts.begin(), row.drafts.begin() + job.draft);
  ban_bad_sequences(state.sampling, with_drafts, banned);
}

void ModelRunner::fill_request(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                               size_t at) {
  HeadRequest& request = requests_[at];
  if (job.is_prompt) {
    request = HeadRequest{};
    request.raw_k = *state.sampling.prompt_logprobs;
    return;
  }
  request = state.head;
  request.bias = state.sampling.logit_bias;
  request.allowed_mask = state.allowed_mask;
  fill_banned(job, row, state, banned_[at]);
  request.banned = banned_[at];
  if (state.penalized) return fill_counts(job, row, state, at);
  if (state.sampling.penalty_window <= 0 || !has_penalty(state.sampling)) return;
  const auto window = static_cast<size_t>(state.sampling.penalty_window);
  const auto last = std::span(state.tokens).last(std::min(window, state.tokens.size()));
  std::vector<TokenId> tokens(last.begin(), last.end());
  tokens.insert(tokens.end(), row.drafts.begin(), row.drafts.begin() + job.draft);
  row_counts_[at] = penalty_counts(state.sampling, tokens, static_cast<size_t>(state.prompt_length));
  request.counts = row_counts_[at];
}

void ModelRunner::fill_counts(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                              size_t at) {
  requests_[at].counts = state.counts;
  if (job.draft == 0) return;
  std::vector<TokenCount>& counts = row_counts_[at];
  counts = state.counts;
  for (int32_t d = 0; d < job.draft; ++d) {
    const TokenId token = row.drafts[static_cast<size_t>(d)];
    const auto it =
        std::find_if(counts.begin(), counts.end(), [&](const TokenCount& c) { return c.id == token; });
    if (it == counts.end())
      counts.push_back({token, 0, 1});
    else
      ++it->in_output;
  }
  requests_[at].counts = counts;
}

// A draft is accepted iff it equals the token drawn from the target at its position (docs/design.md,
// Numerics): the row goes on as long as the tokens drawn so far are the drafts.
void ModelRunner::finish_job(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                             const HeadOutput& head, RowOutput& out) {
  if (out.status != RowStatus::kOk) return;
  if (!head.finite) return fail_row(out, RowStatus::kNumericError);
  if (job.is_prompt) {
    const TokenId token = state.tokens[static_cast<size_t>(job.position)];
    out.prompt_logprobs.push_back(to_logprobs(logprobs_of(head, token)));
    out.prompt_logprobs.back().rank = rank_of(head, token);
    return;
  }
  const auto accepted = static_cast<size_t>(job.draft);
  if (out.tokens.size() != accepted || (accepted > 0 && out.tokens.back() != row.drafts[accepted - 1]))
    return;
  const StatusOr<TokenId> token = draw(head, state.sampling, job.position);
  if (!token.ok()) {  // the client's mask leaves nothing: its request fails, nobody else's
    log_warning("request {}: {}", state.id, status_message(token.status()));
    return fail_row(out, RowStatus::kNoCandidate);
  }
  out.tokens.push_back(*token);
  if (!state.sampling.logprobs) return;
  out.logprobs.push_back(to_logprobs(logprobs_of(head, *token, state.sampling.logprob_token_ids)));
}

Status ModelRunner::run_jobs(const SchedulerOutput& plan, std::span<RequestState* const> states,
                             std::vector<RowOutput>& outputs) {
  LogitsHead& head = *instance_->model().head();
  const auto turn = static_cast<size_t>(head.max_rows());
  for (size_t begin = 0; begin < jobs_.size(); begin += turn) {
    const size_t n = std::min(turn, jobs_.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      const HeadJob& job = jobs_[begin + i];
      job_rows_[i] = job.batch_row;
      fill_request(job, plan.rows[job.row], *states[job.row], i);
    }
    OMNIBUS_RETURN_IF_ERROR(head.project(std::span(job_rows_).first(n), std::span(requests_).first(n),
                                         std::span(heads_).first(n)));
    for (size_t i = 0; i < n; ++i) {
      const HeadJob& job = jobs_[begin + i];
      finish_job(job, plan.rows[job.row], *states[job.row], heads_[i], outputs[job.row]);
    }
  }
  return absl::OkStatus();
}

StatusOr<ModelRunnerOutput> ModelRunner::run(const SchedulerOutput& plan,
                                             std::span<RequestState* const> states, Communicator* tp) {
  ModelRunnerOutput output;
  output.id = plan.id;
  output.rows.resize(plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) output.rows[i].id = plan.rows[i].id;
  if (plan.rows.empty()) return output;
  if (std::any_of(states.begin(), states.end(), [](const RequestState* s) { return s->failed(); }))
    return run_without_failed(plan, states, tp);

  ForwardBatch batch = arrays_.build(plan.rows, states);
  batch.tp = tp;
  OMNIBUS_RETURN_IF_ERROR(instance_->model().forward(batch, instance_->caches(), nullptr));
  collect_jobs(plan, states);
  OMNIBUS_RETURN_IF_ERROR(run_jobs(plan, states, output.rows));
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const ScheduledRow& row = plan.rows[i];
    const RowOutput& out = output.rows[i];
    const auto drafts = static_cast<int32_t>(row.drafts.size());
    const auto accepted = std::max(0, static_cast<int32_t>(out.tokens.size()) - 1);
    states[i]->computed = row.base_computed + row.n_tokens - drafts + accepted;
    for (TokenId token : out.tokens) states[i]->append(token);
    if (!out.tokens.empty()) states[i]->last_sampled = {plan.id.seq, static_cast<int32_t>(i)};
    states[i]->failure = out.status;
  }
  return output;
}

// Rows of requests that failed in a step before are answered with that failure.
StatusOr<ModelRunnerOutput> ModelRunner::run_without_failed(const SchedulerOutput& plan,
                                                            std::span<RequestState* const> states,
                                                            Communicator* tp) {
  SchedulerOutput rest;
  rest.id = plan.id;
  rest.numerics = plan.numerics;
  std::vector<RequestState*> rest_states;
  ModelRunnerOutput output;
  output.id = plan.id;
  output.rows.resize(plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    output.rows[i].id = plan.rows[i].id;
    output.rows[i].status = states[i]->failure;
    if (states[i]->failed()) continue;
    rest.rows.push_back(plan.rows[i]);
    rest_states.push_back(states[i]);
  }
  OMNIBUS_ASSIGN_OR_RETURN(ModelRunnerOutput done, run(rest, rest_states, tp));
  for (size_t i = 0, next = 0; i < plan.rows.size(); ++i) {
    if (output.rows[i].status != RowStatus::kOk) continue;
    output.rows[i] = std::move(done.rows[next++]);
    if (!output.rows[i].tokens.empty()) states[i]->last_sampled = {plan.id.seq, static_cast<int32_t>(i)};
  }
  return output;
}

Status ModelRunner::warm_up(Communicator* tp) {
  RequestState state;
  state.tokens = {0};
  state.tables.assign(instance_->bytes().groups.size(), {0});
  ScheduledRow row;
  row.n_tokens = 1;
  std::array<RequestState*, 1> states{&state};
  ForwardBatch batch = arrays_.build({&row, 1}, states);
  batch.tp = tp;
  OMNIBUS_RETURN_IF_ERROR(instance_->model().forward(batch, instance_->caches(), nullptr));
  const std::array<int32_t, 1> rows{0};
  const std::array<HeadRequest, 1> requests{};
  std::array<HeadOutput, 1> outputs;
  OMNIBUS_RETURN_IF_ERROR(instance_->model().head()->project(rows, requests, outputs));
  if (outputs[0].finite) return absl::OkStatus();
  return absl::InternalError(
      "the first forward pass gave logits that are not finite: the weights are damaged");
}

}  // namespace omnibus
