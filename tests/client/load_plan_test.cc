// Properties of what a run will send: rates, burstiness, lengths.
#include "omnibus/client/load_plan.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace omnibus::client {
namespace {

BenchServeConfig with_rate(double rate, double burstiness, uint64_t seed) {
  BenchServeConfig config;
  config.request_rate = rate;
  config.burstiness = burstiness;
  config.seed = seed;
  return config;
}

std::vector<double> gaps_of(const std::vector<PlannedRequest>& plan) {
  std::vector<double> gaps;
  for (size_t i = 1; i < plan.size(); ++i)
    gaps.push_back(static_cast<double>(plan[i].at - plan[i - 1].at) * 1e-9);
  return gaps;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Deviation over mean.
double variation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size())) / mean;
}

TEST(LoadPlan, TheRateIsMetAndTheFirstComesAtOnce) {
  for (const double rate : {0.5, 7.0, 2000.0}) {
    for (const double burstiness : {0.2, 1.0, 5.0, std::numeric_limits<double>::infinity()}) {
      const auto plan = make_load_plan(with_rate(rate, burstiness, 11), 501);
      EXPECT_EQ(plan.front().at, 0);
      EXPECT_NEAR(static_cast<double>(plan.back().at) * 1e-9, 500 / rate, 1e-6 * 500 / rate);
      EXPECT_TRUE(std::is_sorted(plan.begin(), plan.end(), [](auto& a, auto& b) { return a.at < b.at; }));
    }
  }
}

// A gamma distribution of shape k has variation 1/sqrt(k); the exponential one, k = 1, has median ln 2.
TEST(LoadPlan, GapsAreGammaDistributed) {
  for (const double shape : {0.25, 0.5, 1.0, 4.0, 25.0}) {
    const auto gaps = gaps_of(make_load_plan(with_rate(10, shape, 5), 20001));
    EXPECT_NEAR(variation_of(gaps), 1 / std::sqrt(shape), 0.04 / std::sqrt(shape)) << "shape " << shape;
  }
  auto gaps = gaps_of(make_load_plan(with_rate(10, 1, 6), 20001));
  std::sort(gaps.begin(), gaps.end());
  EXPECT_NEAR(gaps[gaps.size() / 2] * 10, std::log(2.0), 0.03);
}

TEST(LoadPlan, InfiniteBurstinessIsAConstantRateAndInfiniteRateIsAtOnce) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double gap : gaps_of(make_load_plan(with_rate(8, inf, 1), 100))) EXPECT_NEAR(gap, 0.125, 1e-8);
  for (const PlannedRequest& request : make_load_plan(with_rate(inf, 1, 1), 100)) EXPECT_EQ(request.at, 0);
}

TEST(LoadPlan, LengthsAreUniformInTheirRange) {
  BenchServeConfig config;
  config.random_input_len = 100;
  config.random_output_len = 10;
  for (const PlannedRequest& request : make_load_plan(config, 50)) {
    EXPECT_EQ(request.input_len, 100);
    EXPECT_EQ(request.output_len, 10);
  }
  config.random_range_ratio = 0.5;
  std::vector<double> inputs, outputs;
  for (const PlannedRequest& request : make_load_plan(config, 20000)) {
    inputs.push_back(request.input_len);
    outputs.push_back(request.output_len);
  }
  const auto [least, most] = std::minmax_element(inputs.begin(), inputs.end());
  EXPECT_EQ(*least, 50);
  EXPECT_EQ(*most, 150);
  EXPECT_NEAR(mean_of(inputs), 100, 1);
  EXPECT_NEAR(variation_of(inputs) * 100, 101 / std::sqrt(12), 1);
  const auto [short_output, long_output] = std::minmax_element(outputs.begin(), outputs.end());
  EXPECT_EQ(*short_output, 5);
  EXPECT_EQ(*long_output, 15);
}

TEST(LoadPlan, ShareGptLengthsHaveThePublishedMeansAndLimits) {
  BenchServeConfig config;
  config.dataset = BenchDataset::kShareGpt;
  std::vector<double> inputs, outputs;
  for (const PlannedRequest& request : make_load_plan(config, 20000)) {
    ASSERT_GE(request.input_len, 4);
    ASSERT_GE(request.output_len, 4);
    ASSERT_LE(request.input_len, 1024);
    ASSERT_LE(request.input_len + request.output_len, 2048);
    inputs.push_back(request.input_len);
    outputs.push_back(request.output_len);
  }
  // What is left out shortens the mean a little.
  EXPECT_NEAR(mean_of(inputs), 161.31, 12);
  EXPECT_NEAR(mean_of(outputs), 337.99, 12);
  std::sort(outputs.begin(), outputs.end());
  EXPECT_NEAR(outputs[18000] / outputs[10000], 834.0 / 415, 0.1);
}

TEST(LoadPlan, TheSeedDecidesAll) {
  const auto of_seed = [](uint64_t seed) {
    BenchServeConfig config = with_rate(5, 1, seed);
    config.random_range_ratio = 0.9;
    config.num_prefixes = 4;
    std::vector<int64_t> values;
    for (const PlannedRequest& r : make_load_plan(config, 50)) {
      values.insert(values.end(), {r.at, r.input_len, r.output_len, r.prefix});
    }
    return values;
  };
  EXPECT_EQ(of_seed(3), of_seed(3));
  EXPECT_NE(of_seed(3), of_seed(4));
}

TEST(LoadPlan, PrefixesAreAllUsed) {
  BenchServeConfig config;
  config.num_prefixes = 3;
  std::array<int, 3> used{};
  for (const PlannedRequest& request : make_load_plan(config, 3000))
    ++used.at(static_cast<size_t>(request.prefix));
  for (const int count : used) EXPECT_NEAR(count, 1000, 120);
}

}  // namespace
}  // namespace omnibus::client
