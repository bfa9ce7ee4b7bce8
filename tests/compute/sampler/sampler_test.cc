#include "omnibus/compute/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

#include "src/compute/sampler/exp_weights.h"
#include "src/compute/sampler/filter_chain.h"

namespace omnibus {
namespace {

// What the head hands over, by a full sort: the sampler's input without the head.
HeadOutput head_output(const std::vector<float>& logits, const HeadRequest& request) {
  HeadOutput out;
  std::vector<Candidate> sorted;
  for (size_t i = 0; i < logits.size(); ++i)
    if (std::isfinite(logits[i])) sorted.push_back({logits[i], static_cast<int32_t>(i)});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  double sum = 0;
  for (const Candidate& c : sorted) sum += std::exp(static_cast<double>(c.logit - sorted[0].logit));
  if (!sorted.empty()) out.raw_lse = static_cast<double>(sorted[0].logit) + std::log(sum);
  const auto first = [&](int32_t k) {
    return std::vector<Candidate>(sorted.begin(),
                                  sorted.begin() + std::min<int64_t>(k, static_cast<int64_t>(sorted.size())));
  };
  out.candidates = first(request.k);
  if (request.full) out.full = logits;
  if (request.raw_k >= 0) {
    out.raw_candidates = first(request.raw_k);
    out.raw = logits;
  }
  return out;
}

struct GoldenCase {
  SamplingParams params;
  std::vector<float> logits;
  std::vector<int32_t> kept;
  std::vector<double> probability;
};

template <typename T>
std::vector<T> read_row(std::istream& in) {
  std::string line, word;
  std::getline(in, line);
  std::istringstream words(line);
  std::vector<T> row;
  while (words >> word) row.push_back(static_cast<T>(std::strtod(word.c_str(), nullptr)));
  return row;
}

std::vector<GoldenCase> read_goldens() {
  std::ifstream in(OMNIBUS_SOURCE_DIR "/tests/data/goldens/sampler.txt");
  std::vector<GoldenCase> cases;
  std::string line;
  std::getline(in, line);  // header
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string word;
    size_t vocab = 0;
    GoldenCase c;
    words >> word >> c.params.temperature >> c.params.top_k >> c.params.top_p >> c.params.min_p >> vocab;
    c.logits = read_row<float>(in);
    c.kept = read_row<int32_t>(in);
    c.probability = read_row<double>(in);
    EXPECT_EQ(word, "case");
    EXPECT_EQ(c.logits.size(), vocab);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<float> random_logits(uint64_t seed, size_t vocab, double spread) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = static_cast<float>(normal(rng));
  return logits;
}

TEST(SamplerTest, KeptTokensAreThoseOfTheFloat64Chain) {
  const auto cases = read_goldens();
  ASSERT_GE(cases.size(), 50U);
  for (size_t n = 0; n < cases.size(); ++n) {
    const GoldenCase& c = cases[n];
    SCOPED_TRACE(testing::Message() << "case " << n << " T " << c.params.temperature << " k "
                                    << c.params.top_k << " p " << c.params.top_p << " min_p "
                                    << c.params.min_p);
    const HeadRequest request = head_request_for(c.params);
    const HeadOutput head = head_output(c.logits, request);
    std::vector<Kept> kept;
    filter_row(head, c.params, kept);
    double total = 0;
    for (const Kept& token : kept) total += static_cast<double>(token.weight);
    std::vector<int32_t> ids;
    for (const Kept& token : kept)
      if (static_cast<double>(token.weight) > 1e-30 * total) ids.push_back(token.id);
    ASSERT_EQ(ids, c.kept);
    for (size_t i = 0, j = 0; i < kept.size(); ++i) {
      if (kept[i].id != ids[j]) continue;
      EXPECT_NEAR(static_cast<double>(kept[i].weight) / total, c.probability[j],
                  1e-6 * c.probability[j] + 1e-9);
      if (++j == ids.size()) break;
    }
  }
}

// Upper quantile of chi-square at 1e-3, Wilson and Hilferty (1931).
double chi_square_limit(double degrees) {
  const double z = 3.0902, v = 2 / (9 * degrees);
  return degrees * std::pow(1 - v + z * std::sqrt(v), 3);
}

TEST(SamplerTest, DrawsFollowTheDistribution) {
  constexpr int kDraws = 100000;
  const auto logits = random_logits(7, 40, 1.2);
  SamplingParams variants[4];
  variants[0].temperature = 0.8F;  // the whole row
  variants[1].top_p = 0.9F;
  variants[2].top_k = 12;
  variants[2].top_p = 0.95F;
  variants[3].min_p = 0.05F;
  for (SamplingParams& params : variants) {
    params.seed = 1234567;
    const HeadOutput head = head_output(logits, head_request_for(params));
    std::vector<Kept> kept;
    filter_row(head, params, kept);
    double total = 0;
    for (const Kept& token : kept) total += static_cast<double>(token.weight);
    std::map<TokenId, int> counts;
    for (int i = 0; i < kDraws; ++i) counts[draw(head, params, i).value()]++;
    double chi2 = 0;
    int seen = 0;
    for (const Kept& token : kept) {
      const double expected = kDraws * static_cast<double>(token.weight) / total;
      const double diff = counts[token.id] - expected;
      chi2 += diff * diff / expected;
      seen += counts[token.id];
    }
    EXPECT_EQ(seen, kDraws) << "a filtered token was drawn";
    EXPECT_LT(chi2, chi_square_limit(static_cast<double>(kept.size()) - 1)) << kept.size() << " tokens kept";
  }
}

TEST(SamplerTest, SameKeptSetGivesTheSameDrawWhicheverWayItWasFound) {
  const auto logits = random_logits(11, 700, 2.0);
  for (int position = 0; position < 300; ++position) {
    SamplingParams all, by_k, by_count;
    for (SamplingParams* params : {&all, &by_k, &by_count}) params->seed = 99;
    by_k.top_p = 0.99999999F;  // rounds to 1
    by_count.top_k = 700;
    const auto token = [&](const SamplingParams& p) {
      return draw(head_output(logits, head_request_for(p)), p, position).value();
    };
    EXPECT_EQ(token(all), token(by_k));
    EXPECT_EQ(token(all), token(by_count));
    by_k.top_p = 1;
    by_k.top_k = 100;  // candidates from the head
    SamplingParams by_head = by_k;
    HeadRequest full;
    full.full = true;
    EXPECT_EQ(token(by_k), draw(head_output(logits, full), by_head, position).value());
  }
}

TEST(SamplerTest, DrawIsAFunctionOfSeedAndPositionAlone) {
  const auto logits = random_logits(3, 512, 1.0);
  const auto other = random_logits(4, 512, 1.0);
  SamplingParams params;
  params.top_p = 0.95F;
  params.seed = 5;
  const HeadOutput head = head_output(logits, head_request_for(params));
  std::vector<TokenId> forward, backward;
  for (int i = 0; i < 64; ++i) forward.push_back(draw(head, params, i).value());
  for (int i = 63; i >= 0; --i) {
    (void)draw(head_output(other, head_request_for(params)), params, i);  // a neighbour in the batch
    backward.push_back(draw(head, params, i).value());
  }
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_GT(std::set<TokenId>(forward.begin(), forward.end()).size(), 8U);
  params.seed = 6;
  std::vector<TokenId> reseeded;
  for (int i = 0; i < 64; ++i) reseeded.push_back(draw(head, params, i).value());
  EXPECT_NE(forward, reseeded);
}

TEST(SamplerTest, GreedyFormsTakeTheLowestIdOfTheBest) {
  const std::vector<float> logits{1, 5, 5, 2, 5};
  SamplingParams greedy, top_k, top_p;
  greedy.temperature = 0;
  top_k.top_k = 1;
  top_p.top_p = 0;
  for (const SamplingParams& params : {greedy, top_k, top_p}) {
    const HeadRequest request = head_request_for(params);
    EXPECT_EQ(request.k, 1);
    EXPECT_FALSE(request.full);
    for (int position = 0; position < 20; ++position)
      EXPECT_EQ(draw(head_output(logits, request), params, position).value(), 1);
  }
}

TEST(SamplerTest, MaskedTokensAreNeverDrawn) {
  auto logits = random_logits(21, 900, 0.5);
  for (size_t i = 0; i < logits.size(); i += 2) logits[i] = -std::numeric_limits<float>::infinity();
  SamplingParams params;
  for (int position = 0; position < 2000; ++position) {
    const HeadOutput head = head_output(logits, head_request_for(params));
    EXPECT_EQ(draw(head, params, position).value() % 2, 1);
  }
  const HeadOutput none;
  EXPECT_EQ(draw(none, params, 0).status().code(), StatusCode::kInternal);
}

TEST(SamplerTest, ExtremeTemperaturesStayInRange) {
  const auto logits = random_logits(5, 300, 3.0);
  SamplingParams params;
  params.temperature = 1e-6F;
  const HeadOutput head = head_output(logits, head_request_for(params));
  EXPECT_EQ(draw(head, params, 3).value(), head.candidates[0].id);
  params.temperature = 1e30F;
  std::set<TokenId> drawn;
  for (int i = 0; i < 500; ++i) drawn.insert(draw(head, params, i).value());
  EXPECT_GT(drawn.size(), 150U);
}

TEST(SamplerTest, LogprobsAreTheLogSoftmaxOfTheRawRow) {
  auto logits = random_logits(8, 200, 2.0);
  logits[17] = -1e30F;
  SamplingParams params;
  params.logprobs = 5;
  const HeadRequest request = head_request_for(params);
  EXPECT_EQ(request.raw_k, 5);
  const HeadOutput head = head_output(logits, request);
  const DrawnLogprobs got = logprobs_of(head, 42);
  EXPECT_EQ(got.sampled.id, 42);
  EXPECT_NEAR(static_cast<double>(got.sampled.logprob), static_cast<double>(logits[42]) - head.raw_lse, 1e-6);
  ASSERT_EQ(got.top.size(), 5U);
  for (size_t i = 1; i < got.top.size(); ++i) EXPECT_GE(got.top[i - 1].logprob, got.top[i].logprob);
  EXPECT_EQ(logprobs_of(head, 17).sampled.logprob, -9999.0F);
  params.logprobs.reset();
  EXPECT_EQ(head_request_for(params).raw_k, -1);
}

// What is banned, said in another way: a token is banned when with it the output would end in a sequence.
TEST(SamplerTest, BadSequencesBanWhatWouldCompleteThem) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const auto ids = [&](size_t least, size_t most) {
      std::vector<TokenId> out(least + rng() % (most - least + 1));
      for (TokenId& id : out) id = static_cast<TokenId>(rng() % 3);
      return out;
    };
    SamplingParams params;
    for (size_t i = rng() % 4; i > 0; --i) params.bad_sequences.push_back(ids(1, 4));
    const std::vector<TokenId> output = ids(0, 8);
    std::vector<int32_t> banned{77};  // what others have banned stays
    ban_bad_sequences(params, output, banned);
    std::set<int32_t> expected{77};
    for (TokenId next = 0; next < 3; ++next) {
      std::vector<TokenId> with = output;
      with.push_back(next);
      for (const auto& bad : params.bad_sequences) {
        const bool ends_in_it =
            bad.size() <= with.size() && std::equal(bad.rbegin(), bad.rend(), with.rbegin());
        if (ends_in_it) expected.insert(next);
      }
    }
    EXPECT_EQ(std::set<int32_t>(banned.begin(), banned.end()), expected) << "seed " << seed;
  }
}

TEST(SamplerTest, RankIsThePlaceInTheSortedRow) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> logits = random_logits(seed, 64, 2);
    for (size_t i = 0; i < 64; i += 3) logits[i] = std::round(logits[i]);  // ties
    HeadRequest request;
    request.raw_k = 64;
    const HeadOutput head = head_output(logits, request);
    for (size_t i = 0; i < 64; ++i)
      EXPECT_EQ(rank_of(head, head.raw_candidates[i].id), static_cast<int32_t>(i) + 1) << "seed " << seed;
  }
}

TEST(SamplerTest, LogprobsOfNamedTokensStandAmongTheBest) {
  const std::vector<float> logits = random_logits(5, 50, 3);
  HeadRequest request;
  request.raw_k = 50;
  const auto all = logprobs_of(head_output(logits, request), 7).top;
  request.raw_k = 3;
  const std::vector<TokenId> named = {all[40].id, all[1].id, all[10].id, all[40].id};
  const auto some = logprobs_of(head_output(logits, request), 7, named).top;
  ASSERT_EQ(some.size(), 5U);
  const std::vector<size_t> places = {0, 1, 2, 10, 40};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(some[i].id, all[places[i]].id);
    EXPECT_EQ(some[i].logprob, all[places[i]].logprob);
  }
}

// Against a count by hand of every suffix.
TEST(SamplerTest, PenaltyCountsAreOfTheWindow) {
  const std::vector<TokenId> tokens = {5, 9, 5, 7, 9, 9, 5};
  const size_t prompt = 4;
  SamplingParams params;
  for (const TokenCount& count : penalty_counts(params, tokens, prompt)) {
    EXPECT_EQ(count.in_prompt, std::count(tokens.begin(), tokens.begin() + prompt, count.id)) << count.id;
    EXPECT_EQ(count.in_output, std::count(tokens.begin() + prompt, tokens.end(), count.id)) << count.id;
  }
  for (size_t window = 0; window < 10; ++window) {
    params.penalty_window = static_cast<int32_t>(window);
    const auto first = tokens.end() - static_cast<ptrdiff_t>(std::min(window, tokens.size()));
    int64_t total = 0;
    for (const TokenCount& count : penalty_counts(params, tokens, prompt)) {
      EXPECT_EQ(count.in_prompt, 0);
      EXPECT_EQ(count.in_output, std::count(first, tokens.end(), count.id)) << count.id << " of " << window;
      total += count.in_output;
    }
    EXPECT_EQ(total, static_cast<int64_t>(std::min(window, tokens.size())));
  }
}

TEST(ExpWeightsTest, AgreesWithLibm) {
  std::vector<float> x, out(4001);
  for (int i = 0; i < 4001; ++i) x.push_back(-static_cast<float>(i) * 0.0217F);
  std::vector<double> sums(out.size() / kWeightBlock + 1);
  exp_weights(x.data(), x.size(), 0, 1, out.data(), sums.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i]));
    EXPECT_NEAR(static_cast<double>(out[i]), expected, 3e-7 * expected) << x[i];
    EXPECT_EQ(out[i], exp_weight(x[i], 0, 1));
  }
  EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0), std::accumulate(out.begin(), out.end(), 0.0),
              1e-6);
  EXPECT_EQ(exp_weight(-std::numeric_limits<float>::infinity(), 0, 1), 0.0F);
  EXPECT_EQ(exp_weight(0, 0, 1e-30F), 1.0F);
}

}  // namespace
}  // namespace omnibus
