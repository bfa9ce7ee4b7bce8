#include "fakes/replay_worker.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <span>
#include <thread>
#include <utility>

#include "omnibus/compute/ops/head.h"
#include "omnibus/compute/sampler/sampler.h"

namespace omnibus::fakes {
namespace {

constexpr float kElsewhere = -10'000.0F;
constexpr auto kStall = std::chrono::seconds(3600);

template <typename T>
std::future<StatusOr<T>> ready(StatusOr<T> value) {
  std::promise<StatusOr<T>> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

std::vector<uint32_t> mask_of(const std::vector<TokenId>& allowed, size_t vocab) {
  std::vector<uint32_t> mask;
  if (allowed.empty()) return mask;
  mask.resize((vocab + 31) / 32);
  for (const TokenId id : allowed)
    mask[static_cast<size_t>(id) / 32] |= 1U << (static_cast<uint32_t>(id) % 32);
  return mask;
}

// Ids that would end the output before min_tokens, or complete a bad sequence.
std::vector<int32_t> banned_now(const Request& request, const std::vector<TokenId>& known) {
  const SamplingParams& sampling = request.sampling();
  const auto output = std::span(known).subspan(request.prompt_token_ids.size());
  std::vector<int32_t> banned;
  if (output.size() < static_cast<size_t>(sampling.min_tokens)) {
    banned = request.eos_token_ids;
    banned.insert(banned.end(), sampling.stop_token_ids.begin(), sampling.stop_token_ids.end());
  }
  ban_bad_sequences(sampling, output, banned);
  return banned;
}

}  // namespace

StatusOr<MemoryPlan> ReplayWorker::capacity() {
  MemoryPlan plan;
  KVGroupSpec group;
  group.layers = {0};
  group.bytes_per_block = 1;
  plan.kv.groups.push_back(group);
  plan.kv.num_blocks = script_.num_blocks;
  plan.arenas.push_back({"kv", script_.num_blocks, "replay: no memory behind it"});
  return plan;
}

Status ReplayWorker::join(const GroupSpec& /*group*/) {
  sequences_.clear();
  digest_ = 0;
  return {};
}

WorkerProgress ReplayWorker::progress() const { return {{aborted_epoch_, completed_}, completed_}; }

std::future<StatusOr<PlanDigest>> ReplayWorker::prepare(SchedulerOutput plan) {
  for (const RequestId id : plan.finished) sequences_.erase(id);
  for (const RequestId id : plan.preempted) sequences_.erase(id);
  for (const NewRequestData& data : plan.new_requests) {
    Sequence sequence;
    sequence.request = data.request;
    sequence.known = data.request.prompt_token_ids;
    sequence.behaviour =
        script_.find(script_.tokenizer->decode(sequence.known, /*skip_special_tokens=*/false));
    sequence.known.insert(sequence.known.end(), data.output_token_ids.begin(), data.output_token_ids.end());
    sequences_.insert_or_assign(data.request.id, std::move(sequence));
  }
  digest_ = digest_plan(digest_, plan);
  plan_ = std::move(plan);
  return ready<PlanDigest>(digest_);
}

std::future<StatusOr<ModelRunnerOutput>> ReplayWorker::commit(StepId id) {
  if (!(id == plan_.id)) return ready<ModelRunnerOutput>(absl::InternalError("not the prepared step"));
  ModelRunnerOutput output;
  output.id = id;
  if (Status status = check_sources(); !status.ok()) return ready<ModelRunnerOutput>(status);
  int64_t delay_ms = 0;
  bool twice = false;
  for (const ScheduledRow& row : plan_.rows) {
    const auto it = sequences_.find(row.id);
    if (it == sequences_.end())
      return ready<ModelRunnerOutput>(absl::InternalError("a row of an unknown request"));
    if (const ReplayBehaviour* behaviour = it->second.behaviour; behaviour != nullptr) {
      delay_ms = std::max(delay_ms, behaviour->delay_ms);
      twice = twice || (behaviour->fault == ReplayFault::kTwice && row.samples &&
                        it->second.n_output() == behaviour->fault_at && !last_.rows.empty());
    }
    auto out = run_row(row);
    if (!out.ok()) return ready<ModelRunnerOutput>(out.status());
    Sequence& sequence = it->second;
    if (!out->tokens.empty()) sequence.last_sampled = {id.seq, static_cast<int32_t>(output.rows.size())};
    sequence.failed = out->status != RowStatus::kOk;
    output.rows.push_back(*std::move(out));
  }
  if (delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  if (twice) return ready<ModelRunnerOutput>(last_);
  completed_ = id.seq;
  last_ = output;
  return ready<ModelRunnerOutput>(std::move(output));
}

Status ReplayWorker::check_sources() const {
  for (const ScheduledRow& row : plan_.rows) {
    const auto* from = std::get_if<FromStep>(&row.source);
    const auto it = sequences_.find(row.id);
    if (from == nullptr || it == sequences_.end() || it->second.failed) continue;
    const FromStep& last = it->second.last_sampled;
    if (from->seq != last.seq || from->row != last.row)
      return absl::InternalError("a row takes its input from a step that did not give the last token");
  }
  return {};
}

StatusOr<RowOutput> ReplayWorker::run_row(const ScheduledRow& row) {
  Sequence& sequence = sequences_.at(row.id);
  RowOutput out;
  out.id = row.id;
  add_prompt_logprobs(sequence, row, out);
  if (!row.samples) return out;
  const ReplayBehaviour* behaviour = sequence.behaviour;
  const size_t k =
      behaviour == nullptr ? 1 : static_cast<size_t>(behaviour->k[sequence.steps % behaviour->k.size()]);
  ++sequence.steps;
  for (size_t i = 0; i < k; ++i) {
    if (behaviour != nullptr && sequence.n_output() == behaviour->fault_at) {
      if (behaviour->fault == ReplayFault::kCrash) std::_Exit(70);
      if (behaviour->fault == ReplayFault::kStall) std::this_thread::sleep_for(kStall);
      if (behaviour->fault == ReplayFault::kNan) {
        out.status = RowStatus::kNumericError;
        return out;
      }
    }
    const StatusOr<TokenId> token = draw_next(sequence, out);
    if (!token.ok()) {  // everything is masked: the request fails alone, as in the product's worker
      out = RowOutput{};
      out.id = row.id;
      out.status = RowStatus::kNoCandidate;
      return out;
    }
    out.tokens.push_back(*token);
    sequence.known.push_back(*token);
  }
  return out;
}

void ReplayWorker::fill_logits(const Sequence& sequence) {
  logits_.assign(static_cast<size_t>(script_.tokenizer->vocab_size()), kElsewhere);
  raw_.resize(logits_.size());
  const ReplayBehaviour* behaviour = sequence.behaviour;
  size_t position = sequence.n_output();
  if (behaviour == nullptr ||
      (behaviour->eos && position >= std::max(behaviour->tokens.size(), behaviour->rows.size()))) {
    logits_[static_cast<size_t>(script_.tokenizer->spec().eos)] = 0;
    return;
  }
  if (!behaviour->eos) position %= behaviour->tokens.size();
  if (position < behaviour->rows.size() && behaviour->rows[position]) {
    for (const auto& [id, logit] : *behaviour->rows[position]) logits_[static_cast<size_t>(id)] = logit;
  } else if (position < behaviour->tokens.size()) {
    logits_[static_cast<size_t>(behaviour->tokens[position])] = 0;
  }
}

StatusOr<TokenId> ReplayWorker::draw_next(Sequence& sequence, RowOutput& out) {
  fill_logits(sequence);
  const SamplingParams& sampling = sequence.request.sampling();
  const size_t prompt = sequence.request.prompt_token_ids.size();
  std::vector<TokenCount> counts;
  if (has_penalty(sampling)) counts = penalty_counts(sampling, sequence.known, prompt);
  const std::vector<uint32_t> mask = mask_of(sampling.allowed_token_ids, logits_.size());
  const std::vector<int32_t> banned = banned_now(sequence.request, sequence.known);
  HeadRequest request = head_request_for(sampling);
  request.counts = counts;
  request.bias = sampling.logit_bias;
  request.allowed_mask = mask;
  request.banned = banned;
  HeadOutput head;
  select_candidates(logits_, raw_, request, head);
  OMNIBUS_ASSIGN_OR_RETURN(const TokenId token,
                           draw(head, sampling, static_cast<int64_t>(sequence.known.size())));
  if (sampling.logprobs) {
    DrawnLogprobs drawn = logprobs_of(head, token, sampling.logprob_token_ids);
    out.logprobs.push_back({drawn.sampled, std::move(drawn.top), 0});
  }
  return token;
}

// Each prompt token is certain: log-probability 0 for it, the floor for the lowest other ids.
void ReplayWorker::add_prompt_logprobs(const Sequence& sequence, const ScheduledRow& row,
                                       RowOutput& out) const {
  const auto& wanted = sequence.request.sampling().prompt_logprobs;
  if (!wanted) return;
  const auto& prompt = sequence.request.prompt_token_ids;
  const auto begin = static_cast<size_t>(row.base_computed);
  const size_t end = std::min(begin + static_cast<size_t>(row.n_tokens), prompt.size() - 1);
  for (size_t p = begin + 1; p <= end; ++p) {
    SampledLogprobs logprobs;
    logprobs.sampled = {prompt[p], 0.0F};
    logprobs.rank = 1;
    if (*wanted > 0) logprobs.top.push_back(logprobs.sampled);
    for (TokenId id = 0; static_cast<int32_t>(logprobs.top.size()) < *wanted; ++id) {
      if (id != prompt[p]) logprobs.top.push_back({id, -9999.0F});
    }
    out.prompt_logprobs.push_back(std::move(logprobs));
  }
}

}  // namespace omnibus::fakes
