#include "omnibus/base/common/wall_clock.h"

#include <ctime>

namespace omnibus {

int64_t wall_clock_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace omnibus
