#include "src/control/scheduler/step_budget.h"

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

constexpr int32_t kLeast = 16;

// What a chunk of `n` tokens from `base` on adds to a step.
double cost_of(const StepCost& cost, int64_t n, int64_t base) {
  double ns = static_cast<double>(n) * cost.per_token_ns;
  for (int64_t i = 1; i <= n; ++i) ns += static_cast<double>(base + i) * cost.per_kv_token_ns;
  return ns;
}

TEST(StepBudget, WithoutDecodesOnlyTokensCount) {
  StepBudget budget(512);
  EXPECT_EQ(budget.room(0, kLeast), 512);
  budget.take(500, 0);
  EXPECT_EQ(budget.room(1000, kLeast), 12);
}

// The largest chunk that keeps within the target, by a sum over its tokens.
TEST(StepBudget, BesideDecodesAChunkEndsWhereTheTimeDoes) {
  uint64_t draws = 0;
  const auto below = [&draws](uint64_t n) { return static_cast<int64_t>(splitmix64(7, draws++) % n); };
  for (int round = 0; round < 2000; ++round) {
    const StepCost cost{static_cast<double>(below(5'000'000)), static_cast<double>(below(2'000'000)),
                        static_cast<double>(below(2000))};
    const int64_t target = 200'000'000;
    StepBudget budget(4096);
    double decodes = cost.fixed_ns;
    for (int64_t i = below(32) + 1; i > 0; --i) {
      const auto base = static_cast<int32_t>(below(4000));
      budget.take(1, base);
      decodes += cost_of(cost, 1, base);
    }
    budget.limit_time(cost, target);
    const auto base = static_cast<int32_t>(below(4000));
    const double left = std::max(static_cast<double>(target), 2 * decodes) - decodes;
    const int32_t tokens = budget.tokens();
    int32_t wanted = 0;
    double spent = 0;
    while (wanted < tokens) {
      spent += cost.per_token_ns + (base + wanted + 1) * cost.per_kv_token_ns;
      if (spent > left) break;
      ++wanted;
    }
    EXPECT_NEAR(budget.room(base, kLeast), std::max(wanted, kLeast), 1) << "round " << round;
  }
}

// However slow: the first prefill of a step advances, the others wait for time.
TEST(StepBudget, TheFirstPrefillAlwaysAdvances) {
  StepBudget budget(512);
  budget.take(1, 100);
  budget.limit_time({0, 1e9, 0}, 200'000'000);
  EXPECT_EQ(budget.room(0, kLeast), kLeast);
  budget.take(kLeast, 0);
  EXPECT_EQ(budget.room(0, kLeast), 0);
}

}  // namespace
}  // namespace omnibus
