#include "fakes/fake_worker.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "omnibus/base/common/rng.h"

namespace omnibus::fakes {
namespace {

uint64_t mix(uint64_t hash, TokenId token) { return splitmix64(hash, static_cast<uint64_t>(token) + 1); }

uint64_t mix_text(uint64_t hash, std::string_view text) {
  for (char c : text) hash = splitmix64(hash, static_cast<unsigned char>(c));
  return splitmix64(hash, text.size());
}

// What KV depends on besides the tokens before it.
uint64_t kv_seed(const Request& request, size_t group) {
  uint64_t hash = mix_text(group, request.tenant_salt);
  hash = mix_text(hash, request.adapter ? request.adapter->digest : std::string());
  for (const MediaItem& item : request.media)
    hash = mix_text(splitmix64(hash, static_cast<uint64_t>(item.offset)), item.hash);
  return hash;
}

uint64_t prefix_hash(std::span<const TokenId> tokens) {
  uint64_t hash = 0;
  for (TokenId token : tokens) hash = mix(hash, token);
  return hash;
}

template <typename T>
std::future<T> ready(T value) {
  std::promise<T> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

Status broken(RequestId id, const std::string& what) {
  return absl::InternalError("request " + std::to_string(id) + ": " + what);
}

SampledLogprobs logprobs_after(std::span<const TokenId> known, TokenId token, int32_t k, int32_t vocab_size) {
  SampledLogprobs out;
  out.sampled = {token, fake_logprob(known, token)};
  for (int32_t i = 0; i < k; ++i) out.top.push_back({i % vocab_size, -0.125F * static_cast<float>(i + 1)});
  return out;
}

}  // namespace

TokenId hash_token(uint64_t seed, std::span<const TokenId> known, int32_t vocab_size) {
  return static_cast<TokenId>(splitmix64(prefix_hash(known) ^ seed, known.size()) %
                              static_cast<uint64_t>(vocab_size));
}

float fake_logprob(std::span<const TokenId> known, TokenId token) {
  return -0.0625F * static_cast<float>((known.size() * 7 + static_cast<size_t>(token)) % 160);
}

StatusOr<MemoryPlan> FakeWorker::capacity() {
  MemoryPlan plan;
  plan.kv.num_blocks = options_.num_blocks;
  for (int64_t bytes : options_.group_bytes) {
    KVGroupSpec group;
    group.layers = {static_cast<int32_t>(plan.kv.groups.size())};
    group.bytes_per_block = bytes;
    group.chunk_alignment = options_.chunk_alignment;
    plan.kv.groups.push_back(group);
  }
  plan.arenas.push_back({"kv", options_.num_blocks * 4096, "fake"});
  return plan;
}

Status FakeWorker::allocate_kv(const KVCacheConfig& config) {
  kv_ = config;
  std::vector<int64_t> sizes;
  for (const auto& group : kv_.groups) {
    auto it = std::find(sizes.begin(), sizes.end(), group.bytes_per_block);
    slots_of_group_.push_back(static_cast<size_t>(it - sizes.begin()));
    if (it == sizes.end()) sizes.push_back(group.bytes_per_block);
  }
  slots_.resize(sizes.size());
  return absl::OkStatus();
}

Status FakeWorker::join(const GroupSpec&) {
  digest_ = 0;
  mirror_.clear();
  prepared_.clear();
  sampled_.clear();
  return absl::OkStatus();
}

std::future<StatusOr<PlanDigest>> FakeWorker::prepare(SchedulerOutput plan) {
  Prepared& step = prepared_.emplace_back();
  step.plan = std::move(plan);
  for (const auto& [id, m] : mirror_) step.known[id] = m.known.size();
  if (prepared_.size() == 1) {
    if (Status status = take_plan(step); !status.ok()) return ready<StatusOr<PlanDigest>>(status);
  }
  digest_ = digest_plan(digest_, step.plan);
  return ready<StatusOr<PlanDigest>>(options_.wrong_digest ? digest_ + 1 : digest_);
}

Status FakeWorker::take_plan(Prepared& step) {
  const SchedulerOutput& plan = step.plan;
  step.taken = true;
  for (const auto* gone : {&plan.finished, &plan.preempted})
    for (RequestId id : *gone)
      if (mirror_.erase(id) == 0) return broken(id, "dropped, but not in the mirror");
  for (const auto& data : plan.new_requests) {
    Mirror m;
    m.request = data.request;
    m.known = data.request.prompt_token_ids;
    m.known.insert(m.known.end(), data.output_token_ids.begin(), data.output_token_ids.end());
    m.tables.resize(kv_.groups.size());
    step.known[data.request.id] = m.known.size();
    if (!mirror_.emplace(data.request.id, std::move(m)).second) return broken(data.request.id, "new twice");
  }
  std::set<RequestId> seen;
  for (const auto& row : plan.rows) {
    if (!seen.insert(row.id).second) return broken(row.id, "two rows in one step");
    if (Status status = check_row(step, row); !status.ok()) return status;
  }
  for (const auto& data : plan.new_requests)
    if (seen.count(data.request.id) == 0) return broken(data.request.id, "new without a row");
  if (options_.max_rows > 0 && plan.rows.size() > static_cast<size_t>(options_.max_rows))
    return absl::InternalError("too many rows: " + std::to_string(plan.rows.size()));
  if (options_.max_tokens_per_step > 0 && plan.total_tokens() > options_.max_tokens_per_step)
    return absl::InternalError("token budget exceeded: " + std::to_string(plan.total_tokens()));
  return absl::OkStatus();
}

Status FakeWorker::check_row(const Prepared& step, const ScheduledRow& row) {
  const auto it = mirror_.find(row.id);
  if (it == mirror_.end()) return broken(row.id, "a row for an unknown request");
  Mirror& m = it->second;
  if (row.n_tokens <= 0) return broken(row.id, "an empty row");
  if (m.is_new) m.computed = static_cast<size_t>(row.base_computed);  // read back before it is believed
  m.is_new = false;
  if (m.is_dead) return absl::OkStatus();
  if (static_cast<size_t>(row.base_computed) != m.computed)
    return broken(row.id, "base_computed " + std::to_string(row.base_computed) + ", but " +
                              std::to_string(m.computed) + " tokens are computed");
  if (Status status = check_source(step, row, m); !status.ok()) return status;
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens) - row.drafts.size();
  if (end > m.known.size()) return broken(row.id, "more tokens than known");
  if (row.samples != (end == m.known.size())) return broken(row.id, "wrong samples flag");
  if (!row.samples && !row.drafts.empty()) return broken(row.id, "drafts before the end");
  if (!row.samples && end % static_cast<size_t>(options_.chunk_alignment) != 0)
    return broken(row.id, "prefill cut off its alignment");
  if (!row.new_blocks.empty() && row.new_blocks.size() != m.tables.size())
    return broken(row.id, "wrong number of KV groups");
  for (size_t g = 0; g < row.new_blocks.size(); ++g) {
    for (BlockId block : row.new_blocks[g]) {
      if (block < 0 || block >= kv_.num_blocks) return broken(row.id, "block id out of range");
      m.tables[g].push_back(block);
    }
  }
  return absl::OkStatus();
}

// A token that a row of an earlier step samples is an input only by way of FromStep, and only when that row
// gave just this one.
Status FakeWorker::check_source(const Prepared& step, const ScheduledRow& row, const Mirror& m) const {
  const auto* from = std::get_if<FromStep>(&row.source);
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens) - row.drafts.size();
  if (from == nullptr) {
    const auto known = step.known.find(row.id);
    if (known == step.known.end() || end <= known->second) return absl::OkStatus();
    return broken(row.id, "a token that was not known when the step was planned");
  }
  const auto it = sampled_.find(from->seq);
  if (it == sampled_.end() || from->seq >= step.plan.id.seq || from->row < 0 ||
      static_cast<size_t>(from->row) >= it->second.size())
    return broken(row.id, "a source that is no step in flight");
  const Sampled& source = it->second[static_cast<size_t>(from->row)];
  if (source.id != row.id || source.n_tokens != 1)
    return broken(row.id, "a source that did not sample one token of it");
  if (row.n_tokens != 1 || !row.drafts.empty() || source.position != m.computed)
    return broken(row.id, "a source that sampled another position");
  return absl::OkStatus();
}

std::future<StatusOr<ModelRunnerOutput>> FakeWorker::commit(StepId id) {
  if (prepared_.empty() || !(id == prepared_.front().plan.id))
    return ready<StatusOr<ModelRunnerOutput>>(absl::InternalError("not the oldest prepared step"));
  Prepared& step = prepared_.front();
  if (options_.before_commit) {
    if (Status status = options_.before_commit(step.plan); !status.ok())
      return ready<StatusOr<ModelRunnerOutput>>(status);
  }
  if (!step.taken) {
    if (Status status = take_plan(step); !status.ok()) return ready<StatusOr<ModelRunnerOutput>>(status);
  }
  auto output = run(step.plan);
  prepared_.pop_front();
  return ready(std::move(output));
}

StatusOr<ModelRunnerOutput> FakeWorker::run(const SchedulerOutput& plan) {
  constexpr size_t kStepsKept = 16;
  ModelRunnerOutput output;
  output.id = plan.id;
  std::vector<Sampled>& sampled = sampled_[plan.id.seq];
  for (const auto& row : plan.rows) {
    auto out = run_row(row);
    if (!out.ok()) return out.status();
    sampled.push_back({row.id, out->tokens.size(), mirror_.at(row.id).known.size() - 1});
    output.rows.push_back(std::move(out).value());
  }
  if (sampled_.size() > kStepsKept) sampled_.erase(sampled_.begin());
  completed_ = plan.id.seq;
  return output;
}

StatusOr<RowOutput> FakeWorker::run_row(const ScheduledRow& row) {
  Mirror& m = mirror_.at(row.id);
  RowOutput out;
  out.id = row.id;
  if (m.is_dead) {
    out.status = RowStatus::kNumericError;
    return out;
  }
  if (Status status = write_and_read_kv(m, row); !status.ok()) return status;
  add_prompt_logprobs(m, row, out);
  m.computed += static_cast<size_t>(row.n_tokens);
  if (!row.samples) return out;
  if (options_.is_nan && options_.is_nan(m.request, m.known.size() - m.request.prompt_token_ids.size())) {
    out.status = RowStatus::kNumericError;
    m.is_dead = true;
    return out;
  }
  sample(m, row, out);
  return out;
}

// Each slot of the new tokens gets the hash of the prefix that ends there; then every slot of the sequence is
// read back through the block table, as attention would.
Status FakeWorker::write_and_read_kv(Mirror& m, const ScheduledRow& row) {
  std::vector<TokenId> inputs = m.known;
  inputs.insert(inputs.end(), row.drafts.begin(), row.drafts.end());
  const size_t end = m.computed + static_cast<size_t>(row.n_tokens);
  for (size_t g = 0; g < m.tables.size(); ++g) {
    auto& slots = slots_[slots_of_group_[g]];
    const size_t per_block = static_cast<size_t>(kv_.groups[g].tokens_per_block);
    if (m.tables[g].size() * per_block < end) return broken(row.id, "too few blocks");
    uint64_t hash = kv_seed(m.request, g);
    for (size_t p = 0; p < end; ++p) {
      hash = mix(hash, inputs[p]);
      auto& block = slots[m.tables[g][p / per_block]];
      block.resize(per_block);
      if (p >= m.computed) block[p % per_block] = hash;
      if (block[p % per_block] != hash)
        return broken(row.id, "KV of position " + std::to_string(p) + " belongs to another prefix");
    }
  }
  return absl::OkStatus();
}

TokenId FakeWorker::next_token(const Mirror& m) const {
  if (options_.token) return options_.token(m.request, m.known);
  return hash_token(m.request.sampling().seed, m.known, options_.vocab_size);
}

void FakeWorker::sample(Mirror& m, const ScheduledRow& row, RowOutput& out) {
  const auto& k_list = options_.tokens_per_step;
  const size_t k = static_cast<size_t>(k_list[m.steps++ % k_list.size()]);
  const auto wanted = m.request.sampling().logprobs;
  const auto push = [&](TokenId token) {
    if (wanted) out.logprobs.push_back(logprobs_after(m.known, token, *wanted, options_.vocab_size));
    m.known.push_back(token);
    out.tokens.push_back(token);
  };
  // A draft is accepted iff it is the token drawn from the target at its position.
  size_t accepted = 0;
  push(next_token(m));
  while (accepted < row.drafts.size() && row.drafts[accepted] == out.tokens.back()) {
    ++accepted;
    push(next_token(m));
  }
  m.computed -= row.drafts.size() - accepted;
  while (out.tokens.size() < k) push(next_token(m));
  Mirror guess = m;
  for (int32_t i = 0; i < options_.n_drafts; ++i) {
    const TokenId next = next_token(guess);
    const bool wrong = (guess.known.size() + static_cast<size_t>(next)) % 3 == 0;
    out.next_drafts.push_back(wrong ? (next + 1) % options_.vocab_size : next);
    guess.known.push_back(out.next_drafts.back());
  }
}

void FakeWorker::add_prompt_logprobs(const Mirror& m, const ScheduledRow& row, RowOutput& out) const {
  const auto& wanted = m.request.sampling().prompt_logprobs;
  if (!wanted) return;
  const auto& prompt = m.request.prompt_token_ids;
  const size_t end = std::min(m.computed + static_cast<size_t>(row.n_tokens), prompt.size() - 1);
  for (size_t p = m.computed + 1; p <= end; ++p)
    out.prompt_logprobs.push_back(
        logprobs_after(std::span(prompt).first(p), prompt[p], *wanted, options_.vocab_size));
}

void FakeWorker::abort(Epoch epoch) noexcept { aborted_epoch_ = epoch; }
WorkerProgress FakeWorker::progress() const { return {{aborted_epoch_, completed_}, completed_}; }
Status FakeWorker::control(const ControlOp&) { return absl::OkStatus(); }

}  // namespace omnibus::fakes
