#include "src/control/engine/step_cost_fit.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

StepLoad decode(int64_t rows, int64_t context) { return {rows, rows * context}; }
StepLoad prefill(int64_t tokens, int64_t before) {
  return {tokens, tokens * before + tokens * (tokens + 1) / 2};
}

struct Planted {
  StepCost cost;
  double noise = 0;
  uint64_t state = 1;
  int64_t take(const StepLoad& load) {
    state = splitmix64(state, 1);
    const double u = static_cast<double>(state % 2001) / 1000 - 1;
    return static_cast<int64_t>(cost.predict_ns(load.tokens, load.kv_tokens) * (1 + noise * u));
  }
};

TEST(StepCostFit, RecoversAPlantedCost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](double low, double high) {
      return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
    };
    Planted planted{{draw(1e5, 1e7), draw(1e4, 1e7), draw(1, 100)}, 0, seed};
    StepCostFit fit;
    for (int i = 0; i < 200; ++i) {
      const auto n = static_cast<int64_t>(draw(1, 512));
      const auto context = static_cast<int64_t>(draw(1, 4000));
      const StepLoad load = i % 2 == 0 ? decode(1 + n % 32, context) : prefill(n, context);
      fit.observe(load, planted.take(load));
    }
    EXPECT_NEAR(fit.cost().fixed_ns / planted.cost.fixed_ns, 1, 0.02) << "seed " << seed;
    EXPECT_NEAR(fit.cost().per_token_ns / planted.cost.per_token_ns, 1, 0.02) << "seed " << seed;
    EXPECT_NEAR(fit.cost().per_kv_token_ns / planted.cost.per_kv_token_ns, 1, 0.02) << "seed " << seed;
  }
}

TEST(StepCostFit, NoiseAndRareStallsMoveItLittle) {
  Planted planted{{2e6, 1e6, 20}, 0.2, 3};
  StepCostFit fit;
  for (int i = 0; i < 600; ++i) {
    const StepLoad load = i % 3 == 0 ? prefill(64 + i % 448, i % 1000) : decode(1 + i % 32, 100 + i);
    fit.observe(load, i % 97 == 96 ? 30 * kSecond : planted.take(load));
  }
  for (const StepLoad& load : {decode(1, 100), decode(32, 2000), prefill(512, 0), prefill(256, 3000)}) {
    const double truth = planted.cost.predict_ns(load.tokens, load.kv_tokens);
    EXPECT_NEAR(static_cast<double>(fit.predict_ns(load)) / truth, 1, 0.5) << load.tokens;
  }
}

// One step that was measured far too short or far too long, once the cost is known: neither its own size nor
// any other is predicted much otherwise, and a few like it give all of it back.
TEST(StepCostFit, OneStepFarOffMovesItLittle) {
  const std::vector<StepLoad> sizes = {decode(1, 500),  decode(8, 500),    decode(32, 1500),
                                       prefill(300, 0), prefill(400, 800), prefill(512, 2000)};
  for (const int64_t wrong : {int64_t{1}, int64_t{60'000}, 30 * kSecond}) {
    for (const StepLoad& at : sizes) {
      Planted planted{{5e6, 3e6, 10}, 0.05, 11};
      StepCostFit fit;
      const auto check = [&](double tolerance) {
        for (const StepLoad& load : sizes) {
          const double truth = planted.cost.predict_ns(load.tokens, load.kv_tokens);
          EXPECT_NEAR(static_cast<double>(fit.predict_ns(load)) / truth, 1, tolerance)
              << wrong << " ns for " << at.tokens << " tokens, predicted " << load.tokens;
        }
      };
      const auto learn = [&](int rounds) {
        for (int i = 0; i < rounds; ++i)
          for (const StepLoad& load : sizes) fit.observe(load, planted.take(load));
      };
      learn(40);
      fit.observe(at, wrong);
      check(0.5);
      learn(40);
      check(0.1);
    }
  }
}

// Though nothing else was seen before: steps that say otherwise are believed in the end.
TEST(StepCostFit, FirstStepsFarOffAreForgotten) {
  for (const int64_t wrong : {int64_t{60'000}, 10 * kSecond}) {
    Planted planted{{5e6, 3e6, 0}, 0.05, 13};
    StepCostFit fit;
    for (int i = 0; i < 4; ++i) fit.observe(decode(8, 100), wrong);
    for (int i = 0; i < 500; ++i) fit.observe(decode(8, 100), planted.take(decode(8, 100)));
    const double truth = planted.cost.predict_ns(8, 800);
    EXPECT_NEAR(static_cast<double>(fit.predict_ns(decode(8, 100))) / truth, 1, 0.1) << wrong;
  }
}

// A long time of one sort of step says nothing about the other sort, and takes nothing of it away.
TEST(StepCostFit, HoursOfDecodingLeavePrefillsAsTheyWere) {
  Planted planted{{5e6, 3e6, 10}, 0.05, 9};
  StepCostFit fit;
  for (int i = 0; i < 40; ++i) fit.observe(prefill(512 - i, i * 20), planted.take(prefill(512 - i, i * 20)));
  for (int i = 0; i < 100'000; ++i) fit.observe(decode(4, 100), planted.take(decode(4, 100)));
  const double truth = planted.cost.predict_ns(512, 512 * 513 / 2);
  EXPECT_NEAR(static_cast<double>(fit.predict_ns(prefill(512, 0))) / truth, 1, 0.15);
}

TEST(StepCostFit, FollowsAMachineThatGotSlower) {
  StepCostFit fit;
  Planted fast{{1e6, 1e6, 0}, 0, 1};
  Planted slow{{4e6, 4e6, 0}, 0, 1};
  for (int i = 0; i < 1000; ++i) fit.observe(decode(8, 100), fast.take(decode(8, 100)));
  for (int i = 0; i < 200; ++i) fit.observe(decode(8, 100), slow.take(decode(8, 100)));
  EXPECT_NEAR(static_cast<double>(fit.predict_ns(decode(8, 100))), 36e6, 2e6);
}

TEST(StepCostFit, CoefficientsAreNeverNegative) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    StepCostFit fit;
    for (int i = 0; i < 60; ++i) {
      const StepLoad load{static_cast<int64_t>(random() % 512 + 1), static_cast<int64_t>(random() % 100'000)};
      fit.observe(load, static_cast<int64_t>(random() % kSecond));
      EXPECT_GE(fit.cost().fixed_ns, 0) << "seed " << seed;
      EXPECT_GE(fit.cost().per_token_ns, 0) << "seed " << seed;
      EXPECT_GE(fit.cost().per_kv_token_ns, 0) << "seed " << seed;
      EXPECT_TRUE(std::isfinite(fit.cost().predict_ns(512, 1'000'000))) << "seed " << seed;
    }
  }
}

TEST(StepCostFit, SaysNothingOfStepsItHasNotSeenTheLikeOf) {
  StepCostFit fit;
  EXPECT_EQ(fit.predict_ns(decode(1, 10)), 0);
  for (int i = 0; i < 10; ++i) fit.observe(decode(2, 10), 1'000'000);
  EXPECT_GT(fit.predict_ns(decode(2, 10)), 0);
  EXPECT_EQ(fit.predict_ns(prefill(512, 0)), 0);
}

TEST(StepCostFit, LoadCountsAttendedPairs) {
  SchedulerOutput plan;
  plan.rows.resize(2);
  plan.rows[0].base_computed = 10;
  plan.rows[0].n_tokens = 3;  // attend 11, 12, 13
  plan.rows[1].base_computed = 99;
  plan.rows[1].n_tokens = 1;
  const StepLoad load = load_of(plan);
  EXPECT_EQ(load.tokens, 4);
  EXPECT_EQ(load.kv_tokens, 11 + 12 + 13 + 100);
}

TEST(AllowedStep, FiveTimesThePredictionWithinBounds) {
  EXPECT_EQ(allowed_step_ns(1'000'000, 0), 2 * kSecond);
  EXPECT_EQ(allowed_step_ns(2 * kSecond, 0), 10 * kSecond);
  EXPECT_EQ(allowed_step_ns(100 * kSecond, 0), 60 * kSecond);
  EXPECT_EQ(allowed_step_ns(0, 0), 120 * kSecond);
  EXPECT_EQ(allowed_step_ns(100 * kSecond, kSecond), kSecond);
}

}  // namespace
}  // namespace omnibus
