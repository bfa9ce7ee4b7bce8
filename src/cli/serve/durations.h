// Times of the server's options, and of its end.
#pragma once

#include <chrono>
#include <cstdint>

namespace omnibus {

// For the last bytes of answers, once nothing more is computed.
inline constexpr std::chrono::milliseconds kFlushLimit{1000};

inline std::chrono::milliseconds to_ms(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace omnibus
