#include "omnibus/compute/sampler/sampler.h"

#include <algorithm>
#include <unordered_map>

#include "omnibus/base/common/rng.h"

#include "exp_weights.h"
#include "filter_chain.h"

namespace omnibus {
namespace {

constexpr float kLowestLogprob = -9999.0F;
// Draw index of the target token at a position; speculation and recompute use the same one.
constexpr uint32_t kTokenDraw = 0;

bool is_greedy(const SamplingParams& params) { return params.temperature <= 0 || params.top_k == 1; }

float clamp_logprob(double value) {
  if (!(value > static_cast<double>(kLowestLogprob))) return kLowestLogprob;
  return static_cast<float>(std::min(value, 0.0));
}

// Inverse CDF over the kept tokens in ascending id.
TokenId draw_kept(const std::vector<Kept>& kept, double uniform) {
  double total = 0;
  for (const Kept& token : kept) total += static_cast<double>(token.weight);
  const double target = uniform * total;
  double sum = 0;
  TokenId last = kept.front().id;
  for (const Kept& token : kept) {
    if (token.weight <= 0) continue;
    last = token.id;
    sum += static_cast<double>(token.weight);
    if (sum > target) break;
  }
  return last;
}

// The same over a whole row: blocks first, then one block.
TokenId draw_full(const HeadOutput& head, float temperature, double uniform) {
  static thread_local std::vector<float> weights;
  static thread_local std::vector<double> block_sums;
  const size_t n = head.full.size();
  const size_t blocks = (n + kWeightBlock - 1) / kWeightBlock;
  weights.resize(n);
  block_sums.resize(blocks);
  exp_weights(head.full.data(), n, head.candidates.front().logit, temperature, weights.data(),
              block_sums.data());
  double total = 0;
  for (double sum : block_sums) total += sum;
  const double target = uniform * total;
  double sum = 0;
  size_t block = 0;
  while (block + 1 < blocks && sum + block_sums[block] <= target) sum += block_sums[block++];
  TokenId last = head.candidates.front().id;
  // Lanes inside a block are added in another order than here: when rounding leaves the block short, its last
  // token with a weight is the one.
  for (size_t i = block * kWeightBlock; i < std::min(n, (block + 1) * kWeightBlock); ++i) {
    if (weights[i] <= 0) continue;
    last = static_cast<TokenId>(i);
    sum += static_cast<double>(weights[i]);
    if (sum > target) break;
  }
  return last;
}

}  // namespace

HeadRequest head_request_for(const SamplingParams& params) {
  HeadRequest request;
  request.repetition_penalty = params.repetition_penalty;
  request.frequency_penalty = params.frequency_penalty;
  request.presence_penalty = params.presence_penalty;
  request.raw_k = params.logprobs.value_or(-1);
  if (is_greedy(params) || params.top_p <= 0) return request;
  if (params.top_k > 0 && params.top_k <= kMaxHeadCandidates) {
    request.k = params.top_k;
  } else {
    request.full = true;
  }
  return request;
}

StatusOr<TokenId> draw(const HeadOutput& head, const SamplingParams& params, int64_t position) {
  if (head.candidates.empty())
    return absl::InternalError("no token of the vocabulary may be drawn: every id is masked");
  if (is_greedy(params) || params.top_p <= 0) return head.candidates.front().id;
  const double uniform = philox_uniform(params.seed, static_cast<uint64_t>(position), kTokenDraw);
  if (keeps_all(params)) return draw_full(head, params.temperature, uniform);
  static thread_local std::vector<Kept> kept;
  filter_row(head, params, kept);
  return draw_kept(kept, uniform);
}

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
}

std::vector<TokenCount> penalty_counts(const SamplingParams& params, std::span<const TokenId> tokens,
                                       size_t prompt_length) {
  const bool windowed = params.penalty_window >= 0;
  const size_t most = windowed ? static_cast<size_t>(params.penalty_window) : tokens.size();
  const size_t first = tokens.size() - std::min(most, tokens.size());
  std::vector<TokenCount> counts;
  std::unordered_map<TokenId, size_t> index;
  for (size_t i = first; i < tokens.size(); ++i) {
    const auto [it, fresh] = index.try_emplace(tokens[i], counts.size());
    if (fresh) counts.push_back({tokens[i], 0, 0});
    TokenCount& count = counts[it->second];
    ++(windowed || i >= prompt_length ? count.in_output : count.in_prompt);
  }
  return counts;
}

void ban_bad_sequences(const SamplingParams& params, std::span<const TokenId> output,
                       std::vector<int32_t>& banned) {
  for (const std::vector<TokenId>& ids : params.bad_sequences) {
    const size_t before = ids.size() - 1;
    if (before > output.size()) continue;
    if (std::equal(ids.begin(), ids.end() - 1, output.end() - static_cast<ptrdiff_t>(before)))
      banned.push_back(ids.back());
  }
}

DrawnLogprobs logprobs_of(const HeadOutput& head, TokenId token, std::span<const TokenId> also) {
  DrawnLogprobs out;
  const auto logprob = [&](float logit) { return clamp_logprob(static_cast<double>(logit) - head.raw_lse); };
  out.sampled = {token, logprob(head.raw[static_cast<size_t>(token)])};
  out.top.reserve(head.raw_candidates.size() + also.size());
  for (const Candidate& c : head.raw_candidates) out.top.push_back({c.id, logprob(c.logit)});
  if (also.empty()) return out;
  for (const TokenId id : also) {
    const bool known =
        std::any_of(out.top.begin(), out.top.end(), [&](const TokenLogprob& t) { return t.id == id; });
    if (!known) out.top.push_back({id, logprob(head.raw[static_cast<size_t>(id)])});
  }
  std::sort(out.top.begin(), out.top.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
  });
  return out;
}

int32_t rank_of(const HeadOutput& head, TokenId token) {
  const auto at = static_cast<size_t>(token);
  const float logit = head.raw[at];
  int32_t better = 0;
  for (size_t i = 0; i < head.raw.size(); ++i)
    better += head.raw[i] > logit || (head.raw[i] == logit && i < at) ? 1 : 0;
  return better + 1;
}

}  // namespace omnibus
