#include "src/server/api/best_choices.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

ChoiceResult choice(int32_t index, const std::vector<float>& logprobs) {
  ChoiceResult out;
  out.index = index;
  for (const float value : logprobs) {
    PositionLogprobs position;
    position.sampled = {1, value};
    out.logprobs.push_back(position);
  }
  return out;
}

double mean(const ChoiceResult& c) {
  double sum = 0;
  for (const auto& p : c.logprobs) sum += static_cast<double>(p.sampled.logprob);
  return c.logprobs.empty() ? 0 : sum / static_cast<double>(c.logprobs.size());
}

TEST(BestChoices, KeepsTheBestOfEachPrompt) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t draws = 0;
    const auto next = [&](uint64_t below) { return splitmix64(seed, draws++) % below; };
    const auto made = static_cast<int32_t>(1 + next(6));
    const auto kept = static_cast<int32_t>(1 + next(static_cast<uint64_t>(made)));
    const auto prompts = static_cast<int32_t>(1 + next(3));
    std::vector<ChoiceResult> choices;
    for (int32_t i = 0; i < made * prompts; ++i) {
      std::vector<float> values(next(4));
      for (float& v : values) v = -static_cast<float>(next(3));
      choices.push_back(choice(i, values));
    }
    const auto got = best_choices(choices, made, kept);
    ASSERT_EQ(got.size(), static_cast<size_t>(kept * prompts)) << "seed " << seed;
    for (int32_t p = 0; p < prompts; ++p) {
      // Nothing left out is better than the worst that is kept; kept ones are in order.
      const auto begin = got.begin() + p * kept;
      for (auto it = begin; it != begin + kept; ++it) {
        ASSERT_EQ(it->index / made, p) << "seed " << seed;
        if (it != begin) EXPECT_GE(mean(*(it - 1)), mean(*it)) << "seed " << seed;
      }
      const double worst = mean(*(begin + kept - 1));
      for (int32_t i = p * made; i < (p + 1) * made; ++i) {
        const bool is_kept =
            std::any_of(begin, begin + kept, [&](const ChoiceResult& c) { return c.index == i; });
        if (!is_kept) EXPECT_LE(mean(choices[static_cast<size_t>(i)]), worst) << "seed " << seed;
      }
    }
  }
}

TEST(BestChoices, EqualOnesStayInOrder) {
  const auto got = best_choices({choice(0, {-1}), choice(1, {-1, -1}), choice(2, {-1})}, 3, 2);
  EXPECT_EQ(got[0].index, 0);
  EXPECT_EQ(got[1].index, 1);
}

}  // namespace
}  // namespace omnibus
