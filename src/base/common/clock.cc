#include "omnibus/base/common/clock.h"

#include <ctime>

namespace omnibus {

MonotonicNs SteadyClock::now_ns() const {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

int64_t wall_clock_seconds() { return std::time(nullptr); }

}  // namespace omnibus
