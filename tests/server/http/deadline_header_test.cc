#include "src/server/http/deadline_header.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

constexpr MonotonicNs kNow = 1'000'000'000'000;

HttpRequest with(std::vector<std::string> values) {
  HttpRequest request;
  for (std::string& value : values) request.headers.emplace_back("x-deadline", std::move(value));
  return request;
}

TEST(DeadlineHeader, NoneIsNone) {
  const auto deadline = header_deadline(with({}), kNow);
  ASSERT_TRUE(deadline.ok());
  EXPECT_FALSE(deadline->has_value());
}

// Any number of nanoseconds, written as seconds, comes back.
TEST(DeadlineHeader, DecimalSecondsFromNow) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto ns = static_cast<int64_t>(splitmix64(seed, i) % 600'000'000'000'000) + 1;
    const std::string text = fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
    const auto deadline = header_deadline(with({text}), kNow);
    ASSERT_TRUE(deadline.ok()) << deadline.status();
    // 10^5 seconds as a double are good to some tens of nanoseconds.
    EXPECT_NEAR(static_cast<double>(**deadline - kNow), static_cast<double>(ns), 100) << text;
  }
  EXPECT_EQ(**header_deadline(with({"30"}), kNow), kNow + 30'000'000'000);
  EXPECT_EQ(**header_deadline(with({"2.5"}), kNow), kNow + 2'500'000'000);
  EXPECT_EQ(**header_deadline(with({"604800"}), kNow), kNow + 604'800'000'000'000);
}

TEST(DeadlineHeader, AnythingElseIs400NamingIt) {
  std::vector<std::vector<std::string>> bad = {{"1", "2"}, {"1", "1"}};
  for (const char* text :
       {"",   "0",   "0.0", "-1",     "+1",   "1e3",   "0x10",
        "1.", ".5",  ".",   "5s",     "1,5",  "1 2",   " 1",
        "1 ", "inf", "nan", "604801", "1..2", "1.2.3", "99999999999999999999999999999999999999"})
    bad.push_back({text});
  for (const auto& values : bad) {
    const auto deadline = header_deadline(with(values), kNow);
    ASSERT_FALSE(deadline.ok()) << values.front();
    EXPECT_EQ(error_detail(deadline.status()).http, 400);
    EXPECT_EQ(error_detail(deadline.status()).param, "X-Deadline");
    EXPECT_LT(status_message(deadline.status()).size(), 400U);
  }
}

}  // namespace
}  // namespace omnibus
