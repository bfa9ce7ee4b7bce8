#include "input_batch.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "omnibus/compute/sampler/sampler.h"

namespace omnibus {
namespace {

template <typename... Args>
Status invalid(RequestId id, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("plan: request {}: {}", id, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace

void RequestState::count(TokenId token, bool in_output) {
  const auto [it, fresh] = count_index.try_emplace(token, counts.size());
  if (fresh) counts.push_back({token, 0, 0});
  TokenCount& c = counts[it->second];
  ++(in_output ? c.in_output : c.in_prompt);
}

void RequestState::append(TokenId token) {
  tokens.push_back(token);
  if (penalized) count(token, true);
}

Status InputBatch::check_new(const NewRequestData& data) const {
  const Request& r = data.request;
  if (r.is_pooling()) return invalid(r.id, "pooling is not built for this model");
  if (!r.media.empty()) return invalid(r.id, "media are not built for this model");
  if (r.adapter) return invalid(r.id, "adapters are not built");
  if (r.prompt_token_ids.empty()) return invalid(r.id, "the prompt is empty");
  std::vector<const std::vector<TokenId>*> lists = {
      &r.prompt_token_ids, &data.output_token_ids, &r.sampling().allowed_token_ids,
      &r.sampling().stop_token_ids, &r.sampling().logprob_token_ids};
  for (const auto& ids : r.sampling().bad_sequences) {
    if (ids.empty()) return invalid(r.id, "an empty bad sequence");
    lists.push_back(&ids);
  }
  for (const auto* ids : lists)
    for (TokenId id : *ids)
      if (id < 0 || id >= limits_.vocab_size)
        return invalid(r.id, "token id {} is outside the vocabulary of {}", id, limits_.vocab_size);
  for (const auto& [id, bias] : r.sampling().logit_bias)
    if (id < 0 || id >= limits_.vocab_size)
      return invalid(r.id, "logit_bias of id {} is outside the vocabulary of {}", id, limits_.vocab_size);
  return absl::OkStatus();
}

// Steps run one after the other, so the token of the step named is the last that the mirror has; that it is
// the right one shows in where it came from.
Status InputBatch::check_source(const ScheduledRow& row, const RequestState* state) {
  const auto* from = std::get_if<FromStep>(&row.source);
  if (from == nullptr) return absl::OkStatus();
  if (state == nullptr) return invalid(row.id, "a new request that takes its input from step {}", from->seq);
  if (from->seq != state->last_sampled.seq || from->row != state->last_sampled.row)
    return invalid(row.id, "input from row {} of step {}, but its last token is of row {} of step {}",
                   from->row, from->seq, state->last_sampled.row, state->last_sampled.seq);
  return absl::OkStatus();
}

Status InputBatch::check_row(const ScheduledRow& row, int32_t known, int32_t computed,
                             const RequestState* state) const {
  const int64_t drafts = static_cast<int64_t>(row.drafts.size());
  const int64_t end = int64_t{row.base_computed} + row.n_tokens;
  // Planned before the scheduler heard of the failure; no token is there to go on from.
  const bool is_void = state != nullptr && state->failed();
  if (!is_void) OMNIBUS_RETURN_IF_ERROR(check_source(row, state));
  if (row.adapter_slot != -1) return invalid(row.id, "adapters are not built");
  if (row.n_tokens < 1 || drafts >= row.n_tokens)
    return invalid(row.id, "{} tokens with {} drafts", row.n_tokens, drafts);
  if (row.base_computed < 0 || (!is_void && row.base_computed > computed))
    return invalid(row.id, "base_computed {}, but only {} tokens have been computed", row.base_computed,
                   computed);
  if (!is_void && end - drafts > known)
    return invalid(row.id, "tokens up to {} scheduled, {} are known", end - drafts, known);
  if (!is_void && (row.samples != (end - drafts == known) || (drafts > 0 && !row.samples)))
    return invalid(row.id, "samples is {} at {} of {} known tokens with {} drafts", row.samples, end, known,
                   drafts);
  if (end > limits_.max_model_len)
    return invalid(row.id, "{} tokens exceed the context of {}", end, limits_.max_model_len);
  for (TokenId id : row.drafts)
    if (id < 0 || id >= limits_.vocab_size)
      return invalid(row.id, "draft id {} is outside the vocabulary", id);
  if (row.new_blocks.size() > static_cast<size_t>(limits_.groups) ||
      (row.new_blocks.empty() && state == nullptr))
    return invalid(row.id, "blocks for {} KV groups of {}", row.new_blocks.size(), limits_.groups);
  for (size_t g = 0; g < static_cast<size_t>(limits_.groups); ++g) {
    size_t blocks = state == nullptr ? 0 : state->tables[g].size();
    if (g < row.new_blocks.size()) {
      blocks += row.new_blocks[g].size();
      for (BlockId block : row.new_blocks[g])
        if (block < 0 || block >= limits_.num_blocks)
          return invalid(row.id, "block {} of {}", block, limits_.num_blocks);
    }
    if (static_cast<int64_t>(blocks) * kTokensPerBlock < end)
      return invalid(row.id, "{} blocks of group {} for {} tokens", blocks, g, end);
  }
  return absl::OkStatus();
}

Status InputBatch::check(const SchedulerOutput& plan) const {
  if (plan.total_tokens() > limits_.max_rows)
    return absl::InvalidArgumentError(
        fmt::format("plan: {} tokens in one step, --max-num-batched-tokens is {}", plan.total_tokens(),
                    limits_.max_rows));
  std::unordered_set<RequestId> gone(plan.finished.begin(), plan.finished.end());
  gone.insert(plan.preempted.begin(), plan.preempted.end());
  std::unordered_map<RequestId, const NewRequestData*> fresh;
  for (const NewRequestData& data : plan.new_requests) {
    const RequestId id = data.request.id;
    if (!fresh.emplace(id, &data).second || (slot_of_.contains(id) && !gone.contains(id)))
      return invalid(id, "added while it is running");
    OMNIBUS_RETURN_IF_ERROR(check_new(data));
  }
  std::unordered_set<RequestId> scheduled;
  for (const ScheduledRow& row : plan.rows) {
    if (!scheduled.insert(row.id).second) return invalid(row.id, "two rows in one step");
    if (const auto it = fresh.find(row.id); it != fresh.end()) {
      const auto known = static_cast<int32_t>(it->second->request.prompt_token_ids.size() +
                                              it->second->output_token_ids.size());
      OMNIBUS_RETURN_IF_ERROR(check_row(row, known, known, nullptr));
      continue;
    }
    const auto it = slot_of_.find(row.id);
    if (it == slot_of_.end() || gone.contains(row.id)) return invalid(row.id, "scheduled but not known here");
    const RequestState& state = slots_[it->second];
    OMNIBUS_RETURN_IF_ERROR(check_row(row, state.known(), state.computed, &state));
  }
  return absl::OkStatus();
}

void InputBatch::drop(RequestId id) {
  const auto it = slot_of_.find(id);
  if (it == slot_of_.end()) return;  // finished before it ever ran
  slots_[it->second] = RequestState{};
  free_slots_.push_back(it->second);
  slot_of_.erase(it);
}

void InputBatch::add(const NewRequestData& data) {
  size_t slot = slots_.size();
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const Request& r = data.request;
  slot_of_[r.id] = slot;
  RequestState& s = slots_[slot];
  s.id = r.id;
  s.sampling = r.sampling();
  s.head = head_request_for(s.sampling);
  s.tokens.reserve(r.prompt_token_ids.size() + static_cast<size_t>(std::max(s.sampling.max_tokens, 0)) + 1);
  s.tokens = r.prompt_token_ids;
  s.tokens.insert(s.tokens.end(), data.output_token_ids.begin(), data.output_token_ids.end());
  s.prompt_length = static_cast<int32_t>(r.prompt_token_ids.size());
  s.tables.resize(static_cast<size_t>(limits_.groups));
  if (!s.sampling.allowed_token_ids.empty()) {
    s.allowed_mask.resize(static_cast<size_t>(limits_.vocab_size + 31) / 32);
    for (TokenId id : s.sampling.allowed_token_ids)
      s.allowed_mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
  }
  s.stop_ids.assign(r.eos_token_ids.begin(), r.eos_token_ids.end());
  s.stop_ids.insert(s.stop_ids.end(), s.sampling.stop_token_ids.begin(), s.sampling.stop_token_ids.end());
  std::erase_if(s.stop_ids, [&](int32_t id) { return id < 0 || id >= limits_.vocab_size; });
  const bool whole_window = s.sampling.penalty_window >= limits_.max_model_len;
  s.penalized = has_penalty(s.sampling) && (s.sampling.penalty_window < 0 || whole_window);
  if (s.penalized)
    for (int32_t i = 0; i < s.known(); ++i)
      s.count(s.tokens[static_cast<size_t>(i)], whole_window || i >= s.prompt_length);
}

Status InputBatch::apply(const SchedulerOutput& plan, std::vector<RequestState*>& rows) {
  OMNIBUS_RETURN_IF_ERROR(check(plan));
  for (RequestId id : plan.finished) drop(id);
  for (RequestId id : plan.preempted) drop(id);
  for (const NewRequestData& data : plan.new_requests) add(data);
  rows.clear();
  for (const ScheduledRow& row : plan.rows) {
    RequestState& state = slots_[slot_of_.at(row.id)];
    for (size_t g = 0; g < row.new_blocks.size(); ++g)
      state.tables[g].insert(state.tables[g].end(), row.new_blocks[g].begin(), row.new_blocks[g].end());
    rows.push_back(&state);
  }
  return absl::OkStatus();
}

}  // namespace omnibus
