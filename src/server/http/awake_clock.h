// AwakeClock: monotonic time that stands still while the process does (SIGSTOP, a paused virtual machine), so
// that after a pause nobody is blamed for what he could not have sent.
#pragma once

#include <chrono>
#include <mutex>

namespace omnibus {

// Any thread. Somebody has to look at it every kTick; a gap of more than kPause is a pause.
class AwakeClock {
 public:
  using Steady = std::chrono::steady_clock;
  using TimePoint = Steady::time_point;  // of this clock; behind Steady's by all pauses so far

  static constexpr auto kTick = std::chrono::milliseconds(250);
  static constexpr auto kPause = std::chrono::milliseconds(1250);

  TimePoint now() { return at(Steady::now()); }
  // `steady` as this clock has it. Calls must not go back by more than the threads of one process do.
  TimePoint at(Steady::time_point steady) {
    std::lock_guard lock(mutex_);
    if (steady - seen_ > kPause && seen_ != Steady::time_point()) slept_ += steady - seen_;
    if (steady > seen_) seen_ = steady;
    return steady - slept_;
  }
  // When Steady will show what is `time` here, unless there is another pause.
  Steady::time_point steady(TimePoint time) const {
    std::lock_guard lock(mutex_);
    return time + slept_;
  }

 private:
  mutable std::mutex mutex_;
  Steady::time_point seen_;
  Steady::duration slept_{0};
};

}  // namespace omnibus
