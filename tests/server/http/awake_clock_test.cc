#include "src/server/http/awake_clock.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const AwakeClock::TimePoint kStart = AwakeClock::TimePoint() + std::chrono::hours(1000);

TEST(AwakeClock, RunsWithTheSteadyClock) {
  AwakeClock clock;
  for (int ms = 0; ms < 10'000; ms += 250)
    EXPECT_EQ(clock.at(kStart + milliseconds(ms)), kStart + milliseconds(ms));
  EXPECT_EQ(clock.steady(kStart), kStart);
}

TEST(AwakeClock, StandsStillInAPause) {
  AwakeClock clock;
  clock.at(kStart);
  const auto deadline = kStart + seconds(2);
  EXPECT_EQ(clock.at(kStart + seconds(60)), kStart);  // nobody looked for a minute
  EXPECT_EQ(clock.at(kStart + seconds(61)), kStart + seconds(1));
  EXPECT_LT(clock.at(kStart + milliseconds(61'900)), deadline);
  EXPECT_GE(clock.at(kStart + seconds(62)), deadline);
  EXPECT_EQ(clock.steady(deadline), kStart + seconds(62));
}

TEST(AwakeClock, EachPauseCountsOnce) {
  AwakeClock clock;
  clock.at(kStart);
  clock.at(kStart + seconds(10));
  EXPECT_EQ(clock.at(kStart + seconds(10)), kStart);  // a second timer that fires after the same pause
  EXPECT_EQ(clock.at(kStart + seconds(20)), kStart);
}

TEST(AwakeClock, NeverGoesBack) {
  AwakeClock clock;
  auto last = clock.at(kStart);
  auto steady = kStart;
  for (int i = 1; i < 1000; ++i) {
    steady += milliseconds(i * 37 % 5000);
    const auto now = clock.at(steady);
    EXPECT_GE(now, last);
    EXPECT_LE(now, steady);
    last = now;
  }
}

TEST(AwakeClock, AThreadThatComesLateWithItsTimeMakesNoPause) {
  AwakeClock clock;
  clock.at(kStart + seconds(1));
  EXPECT_EQ(clock.at(kStart), kStart);
  EXPECT_EQ(clock.at(kStart + seconds(2)), kStart + seconds(2));
}

}  // namespace
}  // namespace omnibus
