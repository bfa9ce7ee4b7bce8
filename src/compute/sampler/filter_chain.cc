#include "filter_chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "exp_weights.h"

namespace omnibus {
namespace {

// Monotone: a larger logit has a larger key. -0 and +0 share one.
uint32_t descending_rank_key(float logit) {
  const uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

struct Threshold {
  uint32_t key = 0;  // kept: larger keys, and ...
  int64_t ties = 0;  // ... this many of the equal ones, lowest ids first
};

// What a token adds to the running total that a filter cuts: 1 for top-k, its weight for top-p.
struct CountMeasure {
  double operator()(const Kept&) const { return 1; }
};
struct WeightMeasure {
  double operator()(const Kept& token) const { return static_cast<double>(token.weight); }
};

// Finds where, going down from the largest logit, the sum of the tokens above reaches `budget`: a radix
// select over the ordered bits of the logits (histogram of 11, 11 and 10 bits), each level only over the
// boundary bucket of the one before. Tokens in `row` are in ascending id.
template <typename Measure>
Threshold find_threshold(std::span<const Kept> row, double budget, Measure measure) {
  struct Level {
    int shift, bits;
  };
  constexpr std::array<Level, 3> kLevels{{{21, 11}, {10, 11}, {0, 10}}};
  static thread_local std::vector<double> sums;
  uint32_t prefix = 0, prefix_mask = 0;
  double above = 0;  // measure of all tokens with a larger prefix
  for (const Level level : kLevels) {
    const uint32_t mask = (1U << level.bits) - 1;
    sums.assign(mask + 1, -1.0);  // -1: no token
    for (const Kept& token : row) {
      const uint32_t key = descending_rank_key(token.logit);
      if ((key & prefix_mask) != prefix) continue;
      double& sum = sums[(key >> level.shift) & mask];
      sum = std::max(sum, 0.0) + measure(token);
    }
    uint32_t boundary = 0;
    double before = above;
    for (uint32_t bucket = mask + 1; bucket-- > 0;) {
      if (sums[bucket] < 0) continue;
      boundary = bucket;
      before = above;
      above += sums[bucket];
      if (above >= budget) break;
    }
    above = before;
    prefix |= boundary << level.shift;
    prefix_mask |= mask << level.shift;
  }
  Threshold threshold{prefix, 0};
  for (const Kept& token : row) {
    if (descending_rank_key(token.logit) != prefix) continue;
    if (threshold.ties > 0 && above >= budget) break;
    ++threshold.ties;
    above += measure(token);
  }
  return threshold;
}

void apply(Threshold threshold, std::vector<Kept>& row) {
  size_t out = 0;
  for (const Kept& token : row) {
    const uint32_t key = descending_rank_key(token.logit);
    if (key < threshold.key || (key == threshold.key && threshold.ties-- <= 0)) continue;
    row[out++] = token;
  }
  row.resize(out);
}

// Lowest logit that min-p keeps: weight >= min_p * (weight of the best).
float min_p_floor(float best, const SamplingParams& params) {
  if (params.min_p <= 0) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(static_cast<double>(best) + static_cast<double>(params.temperature) *
                                                            std::log(static_cast<double>(params.min_p)));
}

// Tokens with at least `floor`, masked ones never; weights are not set.
void collect_by_logit(const HeadOutput& head, float floor, std::vector<Kept>& row) {
  floor = std::max(floor, std::numeric_limits<float>::lowest());
  for (size_t i = 0; i < head.full.size(); ++i)
    if (head.full[i] >= floor) row.push_back({static_cast<int32_t>(i), head.full[i], 0});
  if (!head.full.empty()) return;
  for (const Candidate& c : head.candidates)
    if (c.logit >= floor) row.push_back({c.id, c.logit, 0});
  std::sort(row.begin(), row.end(), [](const Kept& a, const Kept& b) { return a.id < b.id; });
}

// Top-p over the whole row: gathers the tokens that it can keep at all, with weights, and returns the weight
// of everything. A token whose weight times the vocabulary is less than what top-p leaves out has at least
// top_p above it.
double collect_for_top_p(const HeadOutput& head, const SamplingParams& params, std::vector<Kept>& row) {
  static thread_local std::vector<float> weights;
  static thread_local std::vector<double> block_sums;
  const size_t n = head.full.size();
  weights.resize(n);
  block_sums.resize((n + kWeightBlock - 1) / kWeightBlock);
  exp_weights(head.full.data(), n, head.candidates.front().logit, params.temperature, weights.data(),
              block_sums.data());
  double total = 0;
  for (double sum : block_sums) total += sum;
  constexpr double kRoundingRoom = 0.99;
  const double left_out = (1 - static_cast<double>(params.top_p)) * total;
  const float smallest = std::max(static_cast<float>(kRoundingRoom * left_out / static_cast<double>(n)),
                                  std::numeric_limits<float>::min());
  for (size_t i = 0; i < n; ++i)
    if (weights[i] >= smallest) row.push_back({static_cast<int32_t>(i), head.full[i], weights[i]});
  return total;
}

}  // namespace

bool keeps_all(const SamplingParams& params) {
  return params.min_p <= 0 && params.top_k <= 0 && params.top_p >= 1;
}

void filter_row(const HeadOutput& head, const SamplingParams& params, std::vector<Kept>& kept) {
  const float best = head.candidates.front().logit;
  kept.clear();
  double total = 0;
  if (!head.full.empty() && params.top_k <= 0 && params.min_p <= 0) {
    total = collect_for_top_p(head, params, kept);
  } else {
    collect_by_logit(head, min_p_floor(best, params), kept);
    if (params.top_k > 0 && static_cast<size_t>(params.top_k) < kept.size())
      apply(find_threshold(kept, params.top_k, CountMeasure{}), kept);
    for (Kept& token : kept) {
      token.weight = exp_weight(token.logit, best, params.temperature);
      total += static_cast<double>(token.weight);
    }
  }
  if (params.top_p < 1)
    apply(find_threshold(kept, static_cast<double>(params.top_p) * total, WeightMeasure{}), kept);
}

}  // namespace omnibus
