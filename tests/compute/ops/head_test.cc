#include "omnibus/compute/ops/head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "omnibus/compute/ops/linear.h"

#include "kernels/random_weights.h"

namespace omnibus {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// The plain way: sort everything.
std::vector<Candidate> sorted(const std::vector<float>& logits, int32_t k) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != kMinusInf) all.push_back({logits[i], static_cast<int32_t>(i)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  if (all.size() > static_cast<size_t>(k)) all.resize(static_cast<size_t>(k));
  return all;
}

void expect_equal(const std::vector<Candidate>& got, const std::vector<Candidate>& expected,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].id, expected[i].id) << what << " place " << i;
    ASSERT_EQ(got[i].logit, expected[i].logit) << what << " place " << i;
  }
}

std::vector<float> random_logits(Rng& rng, size_t n, bool ties) {
  auto x = random_floats(rng, n, 5.0F);
  if (ties) {
    for (float& v : x) v = std::round(v);
  }
  return x;
}

TEST(SelectCandidates, EqualsASortOfTheRow) {
  Rng rng(test_seed());
  for (int32_t repeat = 0; repeat < 200; ++repeat) {
    const auto n = static_cast<size_t>(pick(rng, 1, 3000));
    const int32_t k = repeat % 3 == 0 ? 1 : pick(rng, 1, 400);
    auto logits = random_logits(rng, n, repeat % 2 == 0);
    if (repeat % 5 == 0)
      std::sort(logits.begin(), logits.end());  // ascending: the threshold rises all the way
    const auto expected = sorted(logits, k);
    HeadOutput out;
    HeadRequest request;
    request.k = k;
    select_candidates(logits, {}, request, out);
    EXPECT_TRUE(out.finite);
    expect_equal(out.candidates, expected,
                 "n=" + std::to_string(n) + " k=" + std::to_string(k) + " repeat=" + std::to_string(repeat) +
                     " seed=" + std::to_string(test_seed()));
    EXPECT_TRUE(out.raw.empty());
    EXPECT_TRUE(out.full.empty());
  }
}

TEST(SelectCandidates, AdjustsInTheDocumentedOrder) {
  Rng rng(test_seed() + 1);
  for (int32_t repeat = 0; repeat < 50; ++repeat) {
    const auto n = static_cast<size_t>(pick(rng, 40, 500));
    const auto raw = random_logits(rng, n, false);
    HeadRequest r;
    r.k = 20;
    r.raw_k = pick(rng, 0, 20);
    r.full = true;
    r.repetition_penalty = 1.3F;
    r.frequency_penalty = 0.4F;
    r.presence_penalty = 0.7F;
    std::vector<TokenCount> counts = {{3, 1, 0}, {5, 0, 4}, {7, 2, 2}, {9, 0, 0}, {-1, 1, 1}, {100000, 1, 1}};
    std::vector<std::pair<int32_t, float>> bias = {{5, 2.0F}, {11, -100.0F}, {-3, 1.0F}, {1 << 20, 1.0F}};
    std::vector<uint32_t> mask((n + 31) / 32, 0xFFFFFFFFU);
    for (uint32_t& word : mask) word = repeat % 2 == 0 ? rng() : word;
    std::vector<int32_t> banned = {2, 3, 1 << 20};
    r.counts = counts;
    r.bias = bias;
    r.allowed_mask = mask;
    r.banned = banned;
    std::vector<float> expected = raw;
    const auto penalise = [&](size_t id, int32_t prompt, int32_t output) {
      float& x = expected[id];
      if (prompt + output > 0) x = x > 0 ? x / 1.3F : x * 1.3F;
      if (output > 0) x = x - 0.4F * static_cast<float>(output) - 0.7F;
    };
    penalise(3, 1, 0);
    penalise(5, 0, 4);
    penalise(7, 2, 2);
    expected[5] += 2.0F;
    expected[11] -= 100.0F;
    for (size_t i = 0; i < n; ++i) {
      if (((mask[i / 32] >> (i % 32)) & 1U) == 0) expected[i] = kMinusInf;
    }
    expected[2] = kMinusInf;
    expected[3] = kMinusInf;

    auto logits = raw;
    std::vector<float> raw_copy(n);
    HeadOutput out;
    select_candidates(logits, raw_copy, r, out);
    expect_equal(out.candidates, sorted(expected, 20), "adjusted");
    expect_equal(out.raw_candidates, sorted(raw, r.raw_k), "raw");
    ASSERT_EQ(out.full.size(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(out.full[i], expected[i]) << i;
    ASSERT_EQ(out.raw.size(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(out.raw[i], raw[i]) << i;
  }
}

TEST(SelectCandidates, LogSumExpMatchesFloat64) {
  Rng rng(test_seed() + 2);
  for (const size_t n : {size_t{1}, size_t{17}, size_t{49152}}) {
    auto logits = random_logits(rng, n, false);
    double sum = 0;
    const double top = *std::max_element(logits.begin(), logits.end());
    for (const float x : logits) sum += std::exp(x - top);
    HeadOutput out;
    HeadRequest r;
    r.raw_k = 0;
    select_candidates(logits, {}, r, out);
    EXPECT_NEAR(out.raw_lse, top + std::log(sum), 1e-6);
    EXPECT_EQ(out.raw.data(), logits.data());  // nothing adjusted: the row itself
    EXPECT_TRUE(out.raw_candidates.empty());
  }
}

TEST(SelectCandidates, NotFiniteFailsTheRow) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), kMinusInf}) {
    for (const size_t at : {size_t{0}, size_t{15}, size_t{16}, size_t{36}}) {
      std::vector<float> logits(37, 1.0F);
      logits[at] = bad;
      HeadOutput out;
      out.candidates.push_back({1, 1});
      select_candidates(logits, {}, {}, out);
      EXPECT_FALSE(out.finite);
      EXPECT_TRUE(out.candidates.empty());
    }
  }
}

TEST(SelectCandidates, AllMaskedGivesNoCandidate) {
  std::vector<float> logits(64, 1.0F);
  const std::vector<uint32_t> mask = {0, 0};
  HeadRequest r;
  r.allowed_mask = mask;
  HeadOutput out;
  select_candidates(logits, {}, r, out);
  EXPECT_TRUE(out.finite);
  EXPECT_TRUE(out.candidates.empty());
}

TEST(Head, RowsEqualLinearPlusSelection) {
  Rng rng(test_seed() + 3);
  for (const CpuIsa isa : supported_isas()) {
    TestDevice device(isa, ActivationMode::kInt8);
    const int32_t vocab = 1000;
    const int32_t k = 64;
    const LinearWeight weight = device.pack(8, random_rows(rng, 8, vocab, k), vocab, k);
    const int32_t m = 5;
    const Activations x = device.activations(random_floats(rng, m * k), m, k);
    std::vector<float> expected(static_cast<size_t>(m) * vocab);
    linear(device.ctx, {&weight, &x, expected.data()});
    std::vector<float> logits(expected.size());
    std::vector<HeadRequest> requests(static_cast<size_t>(m));
    std::vector<HeadOutput> outputs(static_cast<size_t>(m));
    for (int32_t i = 0; i < m; ++i) requests[static_cast<size_t>(i)].k = 1 + 10 * i;
    head(device.ctx, {&weight, &x, logits.data(), nullptr, requests, outputs});
    for (int32_t i = 0; i < m; ++i) {
      const auto begin = expected.begin() + static_cast<ptrdiff_t>(i) * vocab;
      expect_equal(outputs[static_cast<size_t>(i)].candidates, sorted({begin, begin + vocab}, 1 + 10 * i),
                   to_string(isa));
    }
  }
}

}  // namespace
}  // namespace omnibus
