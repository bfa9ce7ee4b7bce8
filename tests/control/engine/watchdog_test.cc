#include "src/control/engine/watchdog.h"

#include <gtest/gtest.h>

#include "src/control/engine/engine_monitor.h"

namespace omnibus {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;

// Ticks every 200 ms until `end`; the first time it says stalled, or 0.
template <typename Tick>
MonotonicNs first_stall(MonotonicNs from, MonotonicNs end, Tick tick) {
  for (MonotonicNs now = from; now < end; now += 200 * kMs)
    if (tick(now)) return now;
  return 0;
}

TEST(Watchdog, StepBeyondItsTimeIsAStall) {
  Watchdog watchdog;
  const StepWatch step{7, kSecond, 3 * kSecond};
  const MonotonicNs at =
      first_stall(kSecond, 60 * kSecond, [&](MonotonicNs now) { return watchdog.tick(now, step); });
  EXPECT_GT(at, 4 * kSecond);
  EXPECT_LE(at, 4 * kSecond + 200 * kMs);
}

TEST(Watchdog, IdleIsNeverAStall) {
  Watchdog watchdog;
  EXPECT_FALSE(watchdog.tick(kSecond, {1, kSecond, kSecond}));
  EXPECT_EQ(first_stall(kSecond + 1, 3600 * kSecond, [&](MonotonicNs now) { return watchdog.tick(now, {}); }),
            0);
}

TEST(Watchdog, StepsThatFollowEachOtherAreNotOneLongStep) {
  Watchdog watchdog;
  const auto moving = [&](MonotonicNs now) {
    const auto step = static_cast<uint64_t>(now / (900 * kMs)) + 1;
    return watchdog.tick(now, {step, static_cast<MonotonicNs>(step) * 900 * kMs, kSecond});
  };
  EXPECT_EQ(first_stall(900 * kMs, 600 * kSecond, moving), 0);
}

// The machine slept: so did the step. It gets its time once more, and no more than once.
TEST(Watchdog, GapInTheTicksArmsTheStepAnew) {
  Watchdog watchdog;
  const StepWatch step{7, kSecond, 3 * kSecond};
  EXPECT_FALSE(watchdog.tick(2 * kSecond, step));
  const MonotonicNs woken = 62 * kSecond;
  EXPECT_FALSE(watchdog.tick(woken, step));
  const MonotonicNs at = first_stall(woken + 200 * kMs, 600 * kSecond,
                                     [&](MonotonicNs now) { return watchdog.tick(now, step); });
  EXPECT_GT(at, woken + 3 * kSecond);
  EXPECT_LE(at, woken + 3 * kSecond + 200 * kMs);
}

TEST(StallDetector, IdleEngineIsAskedAndMustAnswer) {
  EngineState state;
  bool answers = true;
  int pings = 0;
  StallDetector detector(&state, [&](uint64_t number) {
    ++pings;
    if (answers) state.pings_answered = number;
  });
  EXPECT_EQ(first_stall(kSecond, 61 * kSecond, [&](MonotonicNs now) { return detector.tick(now); }), 0);
  EXPECT_GE(pings, 40);
  EXPECT_LE(pings, 61);
  answers = false;
  const MonotonicNs at =
      first_stall(61 * kSecond, 600 * kSecond, [&](MonotonicNs now) { return detector.tick(now); });
  EXPECT_GT(at, 62 * kSecond - 200 * kMs);
  EXPECT_LE(at, 63 * kSecond + 400 * kMs);
  const int asked = pings;
  state.pings_answered = static_cast<uint64_t>(asked);
  EXPECT_FALSE(detector.tick(at + 200 * kMs)) << "an answer that came late is an answer";
}

// While a step runs the thread cannot answer; the step's own time holds.
TEST(StallDetector, PingIsNotDueBehindAStep) {
  EngineState state;
  StallDetector detector(&state, [](uint64_t) {});
  EXPECT_FALSE(detector.tick(kSecond));
  for (MonotonicNs now = 1'200 * kMs; now < 2'400 * kMs; now += 200 * kMs) detector.tick(now);  // asked
  state.set_watch({3, 2'400 * kMs, 20 * kSecond});
  EXPECT_EQ(first_stall(2'400 * kMs, 22 * kSecond, [&](MonotonicNs now) { return detector.tick(now); }), 0);
  state.set_watch({});
  EXPECT_FALSE(detector.tick(22 * kSecond + 200 * kMs)) << "the time to answer begins after the step";
}

}  // namespace
}  // namespace omnibus
