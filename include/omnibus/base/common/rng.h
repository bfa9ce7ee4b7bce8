// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC'11). A draw is a pure function of (seed, position, draw index), so sampling does not depend on batch or
// history.
#pragma once

#include <array>
#include <cstdint>

namespace omnibus {

// One Philox4x32-10 block: four 32-bit words for a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox4x32(const std::array<uint32_t, 4>& counter, uint64_t key);

// Uniform in [0, 1) with 53 bits, from counter (position, draw) and key seed.
double philox_uniform(uint64_t seed, uint64_t position, uint32_t draw);

// SplitMix64 of (seed + i * golden ratio): independent seeds for the n choices of one request.
uint64_t splitmix64(uint64_t seed, uint64_t i);

// 64 bits of entropy from the operating system.
uint64_t random_seed();

}  // namespace omnibus
