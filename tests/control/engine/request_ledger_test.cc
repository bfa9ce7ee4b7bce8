#include "src/control/engine/request_ledger.h"

#include <string>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t retry_after_of_full(RequestLedger& ledger, RequestId id) {
  const Status refused = ledger.open(id, 1, 1);
  EXPECT_EQ(error_detail(refused).http, 429);
  return error_detail(refused).retry_after_ms;
}

TEST(RequestLedger, ShowsTheTokensOfAllThatIsOpenAtAnyTime) {
  ManualClock clock;
  MetricsRegistry registry;
  RequestLedger ledger({10, 1000}, &clock, registry.gauge("open", "tokens"));
  const auto shows = [&](const std::string& value) {
    return registry.serialize().find("\nopen " + value + "\n") != std::string::npos;
  };
  ASSERT_TRUE(ledger.open(1, 2, 7).ok());
  ASSERT_TRUE(ledger.open(3, 1, 5).ok());
  EXPECT_TRUE(shows("19")) << registry.serialize();
  ledger.close_one(1);
  EXPECT_TRUE(shows("12")) << registry.serialize();
  ledger.close_one(1);
  ledger.close_one(3);
  EXPECT_TRUE(shows("0")) << registry.serialize();
}

// Retry-After is the usual time between two ends while there is work; idle hours are not part of it.
TEST(RequestLedger, IdleTimeDoesNotCountInRetryAfter) {
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({1, 1000}, &clock);
  for (RequestId id = 1; id <= 20; ++id) {
    ASSERT_TRUE(ledger.open(id, 1, 1).ok());
    EXPECT_EQ(retry_after_of_full(ledger, 100 + id), 1000) << "after " << id - 1 << " idle hours";
    ledger.close_one(id);
    clock.advance_ns(3600 * kSecond);
  }
}

TEST(RequestLedger, RetryAfterFollowsTheGapsOfABusyServer) {
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({2, 1000}, &clock);
  ASSERT_TRUE(ledger.open(1, 1, 1).ok());
  for (RequestId id = 2; id <= 100; ++id) {
    ASSERT_TRUE(ledger.open(id, 1, 1).ok());
    clock.advance_ns(7 * kSecond);
    ledger.close_one(id - 1);
  }
  ASSERT_TRUE(ledger.open(200, 1, 1).ok());
  EXPECT_EQ(retry_after_of_full(ledger, 201), 7000);
}

TEST(RequestLedger, AGroupThatCanNeverBeTakenIsABadRequest) {
  ManualClock clock;
  const RequestLedger ledger({4, 100}, &clock);
  EXPECT_TRUE(ledger.check_group({4, 100}).ok());
  for (const OpenRequests group : {OpenRequests{5, 1}, OpenRequests{2, 101}}) {
    const Status refused = ledger.check_group(group);
    EXPECT_EQ(error_detail(refused).http, 400);
    EXPECT_EQ(error_detail(refused).param, "prompt");
  }
}

TEST(RequestLedger, TheFirstGapCountsInFull) {
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({3, 1000}, &clock);
  for (RequestId id = 1; id <= 3; ++id) ASSERT_TRUE(ledger.open(id, 1, 1).ok());
  ledger.close_one(1);
  clock.advance_ns(9 * kSecond);
  ledger.close_one(2);
  for (RequestId id = 4; id <= 5; ++id) ASSERT_TRUE(ledger.open(id, 1, 1).ok());
  EXPECT_EQ(retry_after_of_full(ledger, 6), 9000);
}

}  // namespace
}  // namespace omnibus
