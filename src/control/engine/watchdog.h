// Watchdog: does the step in flight take too long? A state machine of (now, step) alone: whoever ticks it
// brings the time.
#pragma once

#include <cstdint>

#include "omnibus/base/common/clock.h"

namespace omnibus {

// The oldest step in flight, and how long it may take.
struct StepWatch {
  uint64_t step = 0;
  MonotonicNs started_ns = 0;  // 0: no step is in flight
  int64_t allowed_ns = 0;
  bool operator==(const StepWatch&) const = default;
};

class Watchdog {
 public:
  // Between two ticks. Longer means that the machine or the process stood still, and so did the step: it is
  // given its whole time anew before it may be called stalled.
  static constexpr int64_t kLongestTickNs = 1'000'000'000;

  // True: stalled. Without a step in flight there is nothing to be late.
  bool tick(MonotonicNs now, const StepWatch& watch);

 private:
  StepWatch watched_;
  MonotonicNs armed_ns_ = 0;  // since when the step's time counts
  MonotonicNs last_tick_ns_ = 0;
};

}  // namespace omnibus
