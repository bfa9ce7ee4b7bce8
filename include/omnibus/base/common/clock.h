// Time as the core sees it: an injected monotonic clock, so that the engine runs the same on virtual time.
#pragma once

#include <cstdint>

namespace omnibus {

// Nanoseconds since an arbitrary start; never goes back.
using MonotonicNs = int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  // Any thread.
  virtual MonotonicNs now_ns() const = 0;
};

// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  MonotonicNs now_ns() const override;
};

// Moves only when told; for tests and the simulator.
class ManualClock final : public Clock {
 public:
  MonotonicNs now_ns() const override { return now_; }
  void advance_ns(int64_t ns) { now_ += ns; }

 private:
  MonotonicNs now_ = 1;
};

// Seconds since the epoch, for API fields ("created") and logs only; never for decisions.
int64_t wall_clock_seconds();

}  // namespace omnibus
