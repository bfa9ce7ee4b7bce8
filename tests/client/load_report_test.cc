// Percentiles and reports against sums done by hand or by brute force.
#include "omnibus/client/load_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "random_stream.h"

namespace omnibus::client {
namespace {

constexpr MonotonicNs kMs = 1'000'000;

// Written from the definition: the values at whole places 0..n-1, and straight lines between them.
double naive_percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1) / 100;
  double result = values.back();
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const auto at = static_cast<double>(i);
    if (place >= at && place < at + 1) result = values[i] * (at + 1 - place) + values[i + 1] * (place - at);
  }
  return result;
}

TEST(Percentile, EqualsTheNaiveOne) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, 0);
    std::vector<double> values(static_cast<size_t>(1 + random.below(60)));
    for (double& v : values) v = std::floor(random.uniform() * 20);
    std::sort(values.begin(), values.end());
    for (const double q : {0.0, 1.0, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0}) {
      ASSERT_NEAR(percentile(values, q), naive_percentile(values, q), 1e-9) << "seed " << seed << " q " << q;
    }
  }
}

// numpy: np.percentile([1, 2, 4, 8, 16], [50, 90, 99]), np.std
TEST(Percentile, EqualsNumpys) {
  const Spread spread = spread_of({16, 1, 8, 2, 4}, {50, 90, 99});
  EXPECT_THAT(spread.percentiles,
              ::testing::ElementsAre(::testing::Pair(50, ::testing::DoubleNear(4, 1e-12)),
                                     ::testing::Pair(90, ::testing::DoubleNear(12.8, 1e-12)),
                                     ::testing::Pair(99, ::testing::DoubleNear(15.68, 1e-12))));
  EXPECT_DOUBLE_EQ(spread.mean, 6.2);
  EXPECT_NEAR(spread.deviation, 5.455272678794342, 1e-12);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 16);
}

TEST(Percentile, OfNothingIsZero) {
  const Spread spread = spread_of({}, {99});
  EXPECT_EQ(spread.count, 0);
  EXPECT_EQ(spread.percentiles[0].second, 0);
}

RequestRecord answered(MonotonicNs sent, std::vector<MonotonicNs> outputs, MonotonicNs ended,
                       int64_t tokens) {
  RequestRecord record;
  record.planned.input_len = 10;
  record.planned.output_len = 3;
  record.sent = sent * kMs;
  for (const MonotonicNs at : outputs) record.outputs.push_back(at * kMs);
  record.ended = ended * kMs;
  record.has_usage = true;
  record.prompt_tokens = 12;
  record.completion_tokens = tokens;
  record.finish_reason = "length";
  record.http_status = 200;
  return record;
}

BenchServeConfig plain_config() {
  BenchServeConfig config;
  config.percentiles = {99};
  config.metrics = {BenchMetric::kTtft, BenchMetric::kTpot, BenchMetric::kItl, BenchMetric::kE2el};
  return config;
}

TEST(LoadReport, TimesOfTwoRequests) {
  LoadResult result;
  result.duration = 2000 * kMs;
  result.records = {answered(100, {150, 160, 180}, 180, 3), answered(200, {300, 400, 500}, 510, 3)};
  const LoadReport report = make_report(result, plain_config());
  EXPECT_EQ(report.completed, 2);
  EXPECT_EQ(report.failed, 0);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 75);   // 50 and 100
  EXPECT_DOUBLE_EQ(report.e2el.mean, 195);  // 80 and 310
  EXPECT_DOUBLE_EQ(report.tpot.mean, 60);   // 30/2 and 210/2
  EXPECT_DOUBLE_EQ(report.itl.mean, 57.5);  // 10, 20, 100, 100
  EXPECT_EQ(report.itl.count, 4);
  EXPECT_EQ(report.input_tokens, 24);
  EXPECT_EQ(report.output_tokens, 6);
  EXPECT_DOUBLE_EQ(report.per_second(report.output_tokens), 3);
  EXPECT_DOUBLE_EQ(report.per_second(report.completed), 1);
}

// Two events with eight tokens: TPOT goes by tokens, ITL by events.
TEST(LoadReport, SeveralTokensInOneEvent) {
  LoadResult result;
  result.duration = 1000 * kMs;
  result.records = {answered(0, {100, 170}, 170, 8)};
  const LoadReport report = make_report(result, plain_config());
  EXPECT_DOUBLE_EQ(report.tpot.mean, 10);
  EXPECT_DOUBLE_EQ(report.itl.mean, 70);
  EXPECT_EQ(report.output_tokens, 8);
  EXPECT_EQ(report.outputs, 2);
  EXPECT_EQ(report.wrong_length, 1);
}

TEST(LoadReport, WithoutUsageTokensAreEventsAndSaidToBe) {
  LoadResult result;
  result.duration = 1000 * kMs;
  result.records = {answered(0, {100, 200, 300}, 300, 0)};
  result.records[0].has_usage = false;
  const LoadReport report = make_report(result, plain_config());
  EXPECT_EQ(report.uncounted, 1);
  EXPECT_EQ(report.output_tokens, 3);
  EXPECT_EQ(report.input_tokens, 10);
  EXPECT_THAT(report_text(report, plain_config()), ::testing::HasSubstr("answers without usage"));
}

TEST(LoadReport, FailuresAreCountedByKindAndNotTimed) {
  LoadResult result;
  result.duration = 1000 * kMs;
  result.records.resize(4);
  for (size_t i = 0; i < 3; ++i) {
    result.records[i].failure = i < 2 ? FailureKind::kStatus : FailureKind::kClosed;
    result.records[i].http_status = 429;
    result.records[i].error = i == 0 ? "slow down" : "x";
    result.records[i].ended = 5 * kMs;
  }
  result.records[3] = answered(0, {10}, 10, 1);
  const LoadReport report = make_report(result, plain_config());
  EXPECT_EQ(report.completed, 1);
  EXPECT_EQ(report.failed, 3);
  EXPECT_EQ(report.failures.at("http 429").count, 2);
  EXPECT_EQ(report.failures.at("http 429").example, "slow down");
  EXPECT_EQ(report.failures.at("closed").count, 1);
  EXPECT_EQ(report.e2el.count, 1);
  const auto json = report_json(report, plain_config(), "m");
  EXPECT_EQ(json["failures"]["http 429"]["count"], 2);
  EXPECT_EQ(json["mean_ttft_ms"], 10.0);
  EXPECT_FALSE(json.contains("mean_tpot_ms"));  // no answer of two tokens
}

// Law: goodput counts exactly those requests for which each limit holds.
TEST(LoadReport, GoodputByBruteForce) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, 0);
    BenchServeConfig config = plain_config();
    if (random.below(2) == 0) config.slo.ttft_ms = static_cast<double>(random.below(100));
    if (random.below(2) == 0) config.slo.tpot_ms = static_cast<double>(random.below(40));
    if (random.below(2) == 0 || config.slo.empty())
      config.slo.e2el_ms = static_cast<double>(random.below(300));
    LoadResult result;
    result.duration = 1000 * kMs;
    int64_t expected = 0;
    for (int i = 0; i < 40; ++i) {
      const int64_t first = random.below(100), second = random.below(100), third = random.below(100);
      result.records.push_back(answered(7, {7 + first, 7 + first + second, 7 + first + second + third},
                                        7 + first + second + third, 3));
      const bool good = static_cast<double>(first) <= config.slo.ttft_ms.value_or(1e9) &&
                        static_cast<double>(second + third) / 2 <= config.slo.tpot_ms.value_or(1e9) &&
                        static_cast<double>(first + second + third) <= config.slo.e2el_ms.value_or(1e9);
      expected += good ? 1 : 0;
    }
    ASSERT_EQ(make_report(result, config).good, expected) << "seed " << seed;
  }
}

TEST(LoadReport, WithoutAStreamOnlyTheWholeIsTimed) {
  BenchServeConfig config = plain_config();
  config.stream = false;
  LoadResult result;
  result.duration = 1000 * kMs;
  result.records = {answered(0, {}, 80, 3)};
  const LoadReport report = make_report(result, config);
  EXPECT_DOUBLE_EQ(report.e2el.mean, 80);
  EXPECT_EQ(report.ttft.count + report.tpot.count + report.itl.count, 0);
}

TEST(LoadReport, InfinityIsWordsInJson) {
  BenchServeConfig config = plain_config();
  config.burstiness = std::numeric_limits<double>::infinity();
  const auto json = report_json(make_report(LoadResult(), config), config, "m");
  EXPECT_EQ(json["settings"]["request_rate"], "inf");
  EXPECT_EQ(json["settings"]["burstiness"], "inf");
}

}  // namespace
}  // namespace omnibus::client
