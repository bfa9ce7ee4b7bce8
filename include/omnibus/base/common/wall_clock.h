// The time of day, for what people and clients read; never for decisions or durations.
#pragma once

#include <cstdint>

namespace omnibus {

// Nanoseconds since the epoch.
int64_t wall_clock_ns();

}  // namespace omnibus
