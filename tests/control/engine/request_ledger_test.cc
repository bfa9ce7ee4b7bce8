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
  EXPECT_TRUE(shows("12")) << registry.serialize();
  ledger.close_one(1);
  EXPECT_TRUE(shows("12")) << "the other choice still has the prompt: " << registry.serialize();
  ledger.close_one(1);
  EXPECT_TRUE(shows("5")) << registry.serialize();
  ledger.close_one(3);
  EXPECT_TRUE(shows("0")) << registry.serialize();
}

// The choices of a request share its prompt's blocks. Counted once for each, a request that fits was refused
// for as long as anybody else was there, and everybody else while it ran.
TEST(RequestLedger, APromptCountsOnceHoweverManyChoices) {
  ManualClock clock;
  RequestLedger ledger({20, 100}, &clock);
  ASSERT_TRUE(ledger.open(1, 1, 10).ok());
  EXPECT_TRUE(ledger.open(2, 8, 80).ok());
  EXPECT_TRUE(ledger.open(10, 4, 10).ok());
  EXPECT_EQ(ledger.open_requests().prompt_tokens, 100);
  EXPECT_EQ(error_detail(ledger.open(20, 1, 1)).http, 429);
  for (int i = 0; i < 7; ++i) ledger.close_one(2);
  EXPECT_EQ(error_detail(ledger.open(20, 1, 1)).http, 429) << "one choice is left";
  ledger.close_one(2);
  EXPECT_TRUE(ledger.open(20, 1, 80).ok());
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

// 32 sequences that began together end together, every 10 s: a request that needs all 32 places gets them
// then.
TEST(RequestLedger, EndsThatComeTogetherAreNoFasterForIt) {
  constexpr int32_t kRows = 32;
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({kRows, 1000}, &clock);
  for (RequestId round = 0; round < 12; ++round) {
    for (RequestId i = 1; i <= kRows; ++i) ASSERT_TRUE(ledger.open(i, 1, 1).ok());
    if (round > 0) {
      EXPECT_EQ(error_detail(ledger.open(2000, kRows, 1)).retry_after_ms, 10'000) << "round " << round;
    }
    clock.advance_ns(10 * kSecond);
    for (RequestId i = 1; i <= kRows; ++i) ledger.close_one(i);
  }
}

// Fifty clients leave at once: the server is no faster than it was.
TEST(RequestLedger, WhoLeavesSaysNothingOfWhenOthersEnd) {
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({51, 1000}, &clock);
  ASSERT_TRUE(ledger.open(1, 1, 1).ok());
  for (RequestId id = 2; id <= 20; ++id) {
    ASSERT_TRUE(ledger.open(id, 1, 1).ok());
    clock.advance_ns(20 * kSecond);
    ledger.close_one(id - 1);
  }
  for (RequestId id = 100; id < 150; ++id) ASSERT_TRUE(ledger.open(id, 1, 1).ok());
  EXPECT_EQ(retry_after_of_full(ledger, 200), 20'000);
  for (RequestId id = 100; id < 150; ++id) ledger.close_one(id, false);
  for (RequestId id = 200; id < 250; ++id) ASSERT_TRUE(ledger.open(id, 1, 1).ok());
  EXPECT_EQ(retry_after_of_full(ledger, 300), 20'000);
}

// Where everybody runs out of time before the end, room comes as slowly as that.
TEST(RequestLedger, AServerThatServesNobodyIsNotSaidToBeFast) {
  ManualClock clock;
  clock.advance_ns(kSecond);
  RequestLedger ledger({2, 1000}, &clock);
  ASSERT_TRUE(ledger.open(1, 1, 1).ok());
  for (RequestId id = 2; id <= 20; ++id) {
    ASSERT_TRUE(ledger.open(id, 1, 1).ok());
    clock.advance_ns(30 * kSecond);
    ledger.close_one(id - 1, false);
  }
  ASSERT_TRUE(ledger.open(100, 1, 1).ok());
  EXPECT_EQ(retry_after_of_full(ledger, 101), 60'000);
}

}  // namespace
}  // namespace omnibus
