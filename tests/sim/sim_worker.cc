#include "sim_worker.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"

#include "sim/token_model.h"

namespace omnibus::sim {

SimWorker::SimWorker(const Scenario& scenario, Verdict* verdict, NanAt nan_at)
    : scenario_(scenario), verdict_(verdict), nan_at_(std::move(nan_at)) {
  std::vector<int64_t> sizes;
  for (const KVGroupSpec& group : scenario.kv.groups) {
    const auto it = std::find(sizes.begin(), sizes.end(), group.bytes_per_block);
    pool_of_group_.push_back(static_cast<size_t>(it - sizes.begin()));
    if (it == sizes.end()) sizes.push_back(group.bytes_per_block);
  }
  Block empty;
  empty.slots.resize(static_cast<size_t>(scenario.kv.groups[0].tokens_per_block));
  pools_.assign(sizes.size(), std::vector<Block>(static_cast<size_t>(scenario.kv.num_blocks), empty));
}

SimWorker::Block& SimWorker::block(size_t group, BlockId id) {
  return pools_[pool_of_group_[group]][static_cast<size_t>(id)];
}

void SimWorker::fail(const char* invariant, RequestId id, const std::string& what) {
  verdict_->fail(invariant, fmt::format("request {}: {}", id, what));
}

void SimWorker::push(Mirror& m, TokenId token) {
  const uint64_t before = m.known.empty() ? identity_of(m.request) : m.prefix.back();
  m.known.push_back(token);
  m.prefix.push_back(extend(before, token));
}

TokenId SimWorker::next_of(const Mirror& m) const { return draw(m.request, m.prefix.back(), m.known.size()); }

bool SimWorker::has_no_number_next(const Mirror& m) const {
  const auto nan_at = nan_at_(m.request.id);
  return nan_at && static_cast<size_t>(*nan_at) == m.known.size() - m.request.prompt_token_ids.size();
}

ModelRunnerOutput SimWorker::run(const SchedulerOutput& plan) {
  ++counts_.steps;
  for (RequestId id : plan.finished) drop(id, "finished");
  for (RequestId id : plan.preempted) drop(id, "preempted");
  counts_.preemptions += static_cast<int64_t>(plan.preempted.size());
  for (const NewRequestData& data : plan.new_requests) take_new(data);
  judge_limits(plan);
  ModelRunnerOutput output;
  output.id = plan.id;
  std::set<RequestId> seen;
  for (size_t i = 0; i < plan.rows.size() && verdict_->ok(); ++i) {
    if (!seen.insert(plan.rows[i].id).second) fail("I6", plan.rows[i].id, "two rows in one step");
    const bool is_new = std::any_of(plan.new_requests.begin(), plan.new_requests.end(),
                                    [&](const auto& data) { return data.request.id == plan.rows[i].id; });
    take_row(plan, i, is_new);
  }
  for (const NewRequestData& data : plan.new_requests)
    if (seen.count(data.request.id) == 0) fail("I3", data.request.id, "new without a row");
  for (size_t i = 0; i < plan.rows.size() && verdict_->ok(); ++i) output.rows.push_back(run_row(plan, i));
  return output;
}

void SimWorker::drop(RequestId id, const char* why) {
  const auto it = mirrors_.find(id);
  if (it == mirrors_.end()) return fail("I3", id, fmt::format("{}, but the workers do not know it", why));
  for (size_t g = 0; g < it->second.tables.size(); ++g)
    for (BlockId id_of_block : it->second.tables[g]) --block(g, id_of_block).holders;
  mirrors_.erase(it);
}

void SimWorker::take_new(const NewRequestData& data) {
  Mirror m;
  m.request = data.request;
  for (TokenId token : data.request.prompt_token_ids) push(m, token);
  for (TokenId token : data.output_token_ids) push(m, token);
  m.tables.resize(pool_of_group_.size());
  if (!mirrors_.emplace(data.request.id, std::move(m)).second)
    fail("I3", data.request.id, "new, but the workers know it");
}

void SimWorker::judge_limits(const SchedulerOutput& plan) {
  const SchedulerConfig& c = scenario_.scheduler;
  if (plan.total_tokens() > c.max_num_batched_tokens)
    verdict_->fail("I6", fmt::format("step {} has {} tokens, the budget is {}", plan.id.seq,
                                     plan.total_tokens(), c.max_num_batched_tokens));
  if (static_cast<int32_t>(plan.rows.size()) > c.max_num_seqs ||
      static_cast<int32_t>(mirrors_.size()) > c.max_num_seqs)
    verdict_->fail("I6", fmt::format("step {} has {} rows of {} running requests, the limit is {}",
                                     plan.id.seq, plan.rows.size(), mirrors_.size(), c.max_num_seqs));
}

void SimWorker::take_row(const SchedulerOutput& plan, size_t index, bool is_new) {
  const ScheduledRow& row = plan.rows[index];
  const auto it = mirrors_.find(row.id);
  if (it == mirrors_.end()) return fail("I5", row.id, "a row of a request that is not there");
  Mirror& m = it->second;
  if (row.n_tokens <= 0) return fail("I3", row.id, "an empty row");
  if (!row.new_blocks.empty() && row.new_blocks.size() != m.tables.size())
    return fail("I3", row.id, "wrong number of KV groups");
  take_blocks(row, m, is_new);
  if (!verdict_->ok()) return;
  if (is_new) judge_hit(plan, row, m);
  if (static_cast<size_t>(row.base_computed) != m.computed)
    return fail(
        "I3", row.id,
        fmt::format("base_computed is {}, but {} tokens are computed", row.base_computed, m.computed));
  if (m.is_dead) return;
  judge_source(row, m);
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens) - row.drafts.size();
  if (!row.samples && end % static_cast<size_t>(scenario_.kv.groups[0].chunk_alignment) != 0)
    fail("I6", row.id, "a prefill is cut off its alignment");
  if (!row.samples && !row.drafts.empty()) fail("I3", row.id, "drafts before the end of what is known");
}

void SimWorker::take_blocks(const ScheduledRow& row, Mirror& m, bool is_new) {
  for (size_t g = 0; g < m.tables.size(); ++g) {
    const auto hits = is_new ? row.base_computed / scenario_.kv.groups[g].tokens_per_block : 0;
    const size_t added = row.new_blocks.empty() ? 0 : row.new_blocks[g].size();
    for (size_t i = 0; i < added; ++i) {
      const BlockId id = row.new_blocks[g][i];
      if (id < 0 || id >= scenario_.kv.num_blocks)
        return fail("I6", row.id, fmt::format("block {} is outside the pool", id));
      if (block(g, id).holders > 0 && static_cast<int32_t>(i) >= hits)
        return fail("I2", row.id, fmt::format("block {} is given out, but another request holds it", id));
      ++block(g, id).holders;
      m.tables[g].push_back(id);
    }
    const int64_t room = static_cast<int64_t>(m.tables[g].size()) * scenario_.kv.groups[g].tokens_per_block;
    if (room < int64_t{row.base_computed} + row.n_tokens) return fail("I6", row.id, "too few blocks");
  }
}

void SimWorker::judge_hit(const SchedulerOutput& plan, const ScheduledRow& row, Mirror& m) {
  const auto hit = static_cast<size_t>(row.base_computed);
  m.computed = hit;
  m.cached = row.base_computed;
  if (hit == 0) return;
  ++counts_.prefix_hits;
  counts_.cached_tokens += row.base_computed;
  if (!scenario_.scheduler.prefix_caching) return fail("I8", row.id, "a prefix hit, though caching is off");
  if (hit >= m.known.size()) return fail("I8", row.id, "a prefix hit leaves nothing to compute");
  if (m.request.sampling().prompt_logprobs && m.known.size() == m.request.prompt_token_ids.size())
    return fail("I8", row.id, "a prefix hit of a request whose prompt's logprobs are wanted");
  for (size_t g = 0; g < m.tables.size(); ++g) {
    const auto per_block = static_cast<size_t>(scenario_.kv.groups[g].tokens_per_block);
    if (hit % per_block != 0)
      return fail("I8", row.id, fmt::format("a prefix hit of {} tokens is no number of full blocks", hit));
    for (size_t p = 0; p < hit; ++p) {
      const BlockId id = m.tables[g][p / per_block];
      const Block& b = block(g, id);
      const auto is = [&](const char* what) {
        fail("I8", row.id, fmt::format("prefix hit on block {} (token {}), {}", id, p, what));
      };
      if (b.slots[p % per_block] != splitmix64(m.prefix[p], g))
        return is("which holds the KV of another adapter, salt, media or prefix");
      if (b.filled_at < 0) return is("which was never full");
      if (b.written_in >= plan.id.seq) return is("which this step is yet to write");
      if (b.poisoned) return is("which a row without numbers wrote");
      if (b.filled_at < resets_) return is("which was cached before the cache was reset");
    }
  }
}

void SimWorker::judge_source(const ScheduledRow& row, const Mirror& m) {
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens) - row.drafts.size();
  if (end > m.known.size()) return fail("I3", row.id, "more tokens than there are");
  if (row.samples != (end == m.known.size())) return fail("I3", row.id, "the row's flag `samples` is wrong");
  const auto* from = std::get_if<FromStep>(&row.source);
  if (from == nullptr) return;
  ++counts_.from_step_rows;
  if (!scenario_.scheduler.from_step) return fail("I3", row.id, "a source FromStep, which is off");
  if (from->seq != m.last_step.seq || from->row != m.last_row || !m.last_sampled)
    return fail("I3", row.id,
                fmt::format("its token is to come from row {} of step {}, but row {} of step {} drew it",
                            from->row, from->seq, m.last_row, m.last_step.seq));
}

RowOutput SimWorker::run_row(const SchedulerOutput& plan, size_t index) {
  const ScheduledRow& row = plan.rows[index];
  Mirror& m = mirrors_.at(row.id);
  RowOutput out;
  out.id = row.id;
  const auto prompt_size = m.request.prompt_token_ids.size();
  if (m.is_dead) {
    poison(row, m);
    out.status = RowStatus::kNumericError;
    return out;
  }
  const bool is_nan = row.samples && has_no_number_next(m);
  write_and_read(plan, row, m, is_nan);
  if (m.request.sampling().prompt_logprobs) {
    const size_t end = std::min(m.computed + static_cast<size_t>(row.n_tokens), prompt_size - 1);
    for (size_t p = m.computed + 1; p <= end; ++p) {
      SampledLogprobs logprobs;
      logprobs.sampled = {m.known[p], logprob_of(p, m.known[p])};
      out.prompt_logprobs.push_back(logprobs);
    }
  }
  m.computed += static_cast<size_t>(row.n_tokens);
  m.last_step = plan.id;
  m.last_row = static_cast<int32_t>(index);
  m.last_sampled = row.samples && !is_nan;
  m.is_dead = is_nan;
  if (is_nan) out.status = RowStatus::kNumericError;
  if (m.last_sampled) sample(m, row, out);
  return out;
}

void SimWorker::poison(const ScheduledRow& row, Mirror& m) {
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens);
  for (size_t g = 0; g < m.tables.size(); ++g) {
    const auto per_block = static_cast<size_t>(scenario_.kv.groups[g].tokens_per_block);
    for (size_t p = m.computed; p < end; ++p) {
      Block& b = block(g, m.tables[g][p / per_block]);
      if (b.holders != 1) return fail("I2", row.id, "writes into a block that others hold");
      b.poisoned = true;
    }
  }
  m.computed = end;
}

void SimWorker::write_and_read(const SchedulerOutput& plan, const ScheduledRow& row, Mirror& m, bool is_nan) {
  const size_t first = m.computed;
  const size_t end = first + static_cast<size_t>(row.n_tokens);
  std::vector<uint64_t> drafted;
  for (TokenId token : row.drafts)
    drafted.push_back(extend(drafted.empty() ? m.prefix.back() : drafted.back(), token));
  for (size_t g = 0; g < m.tables.size(); ++g) {
    const auto per_block = static_cast<size_t>(scenario_.kv.groups[g].tokens_per_block);
    for (size_t p = 0; p < end; ++p) {
      const BlockId id = m.tables[g][p / per_block];
      Block& b = block(g, id);
      const uint64_t hash = splitmix64(p < m.prefix.size() ? m.prefix[p] : drafted[p - m.prefix.size()], g);
      if (p < first) {
        if (b.slots[p % per_block] != hash)
          return fail("I3", row.id, fmt::format("reads another prefix's KV at token {} in block {}", p, id));
        continue;
      }
      if (b.holders != 1)
        return fail("I2", row.id, fmt::format("writes into block {}, which {} requests hold", id, b.holders));
      b.slots[p % per_block] = hash;
      if (p % per_block == 0) b.poisoned = false;
      b.poisoned = b.poisoned || is_nan;
      const bool is_full = (p + 1) % per_block == 0 && p < m.prefix.size();
      b.filled_at = is_full ? resets_ : -1;
      b.written_in = plan.id.seq;
    }
  }
}

// Blocks whose last slot holds a draft are full once it is accepted.
void SimWorker::mark_full(const Mirror& m, size_t from) {
  for (size_t g = 0; g < m.tables.size(); ++g) {
    const auto per_block = static_cast<size_t>(scenario_.kv.groups[g].tokens_per_block);
    for (size_t p = from; p < m.computed; ++p)
      if ((p + 1) % per_block == 0) block(g, m.tables[g][p / per_block]).filled_at = resets_;
  }
}

// A draft is accepted iff it is the token drawn at its position.
void SimWorker::sample(Mirror& m, const ScheduledRow& row, RowOutput& out) {
  const auto& k_list = scenario_.worker.tokens_per_step;
  const auto k = static_cast<size_t>(k_list[m.steps++ % k_list.size()]);
  const auto take = [&](TokenId token) {
    if (m.request.sampling().logprobs) {
      SampledLogprobs logprobs;
      logprobs.sampled = {token, logprob_of(m.known.size(), token)};
      out.logprobs.push_back(logprobs);
    }
    push(m, token);
    out.tokens.push_back(token);
    ++counts_.tokens;
  };
  size_t accepted = 0;
  take(next_of(m));
  while (accepted < row.drafts.size() && row.drafts[accepted] == out.tokens.back() &&
         !has_no_number_next(m)) {
    ++accepted;
    take(next_of(m));
  }
  counts_.accepted_drafts += static_cast<int64_t>(accepted);
  const size_t before_drafts = m.computed - row.drafts.size();
  m.computed = before_drafts + accepted;
  mark_full(m, before_drafts);
  while (out.tokens.size() < k && !has_no_number_next(m)) take(next_of(m));
  if (scenario_.worker.n_drafts == 0) return;
  Mirror guess;
  guess.request.params = m.request.params;
  guess.known = m.known;
  guess.prefix = m.prefix;
  for (int32_t i = 0; i < scenario_.worker.n_drafts; ++i) {
    const TokenId next = next_of(guess);
    const bool is_wrong = (guess.known.size() + static_cast<size_t>(next)) % 3 == 0;
    push(guess, is_wrong ? kFirstLetter + (next + 1) % kLetters : next);
    out.next_drafts.push_back(guess.known.back());
  }
}

}  // namespace omnibus::sim
