// SimRng: the only source of chance in a simulated run. One stream per actor, forked by name, so that a
// change of one actor's draws leaves those of the others as they were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "omnibus/base/common/rng.h"

namespace omnibus::sim {

class SimRng {
 public:
  explicit SimRng(uint64_t seed) : seed_(seed) {}

  SimRng fork(std::string_view actor) const {
    uint64_t seed = seed_;
    for (char c : actor) seed = splitmix64(seed, static_cast<unsigned char>(c));
    return SimRng(seed);
  }

  uint64_t next() { return splitmix64(seed_, drawn_++); }
  // Uniform in [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  int32_t between32(int32_t low, int32_t high) { return static_cast<int32_t>(between(low, high)); }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
  template <typename T>
  const T& pick(std::span<const T> of) {
    return of[static_cast<size_t>(next() % of.size())];
  }
  template <typename T, size_t N>
  const T& pick(const T (&of)[N]) {
    return of[static_cast<size_t>(next() % N)];
  }

 private:
  uint64_t seed_;
  uint64_t drawn_ = 0;
};

}  // namespace omnibus::sim
