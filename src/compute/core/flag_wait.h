// A counter that one thread raises and others wait for: spin first, then yield or sleep on a futex.
#pragma once

#include <atomic>
#include <cstdint>

namespace omnibus {

// One per thread and purpose; 128 bytes so that neither the line nor its prefetched neighbour is shared.
struct alignas(128) Flag {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

struct WaitPolicy {
  int32_t spin_us = 0;  // then:
  bool sleep = true;    // futex; false: yield and look again (inside a step nothing sleeps)
};

// Stores `value` and wakes sleepers, if any.
void raise_flag(Flag& flag, uint32_t value);
// Returns once flag.value has reached `target` (modulo 2^32). Nanoseconds waited past the spin, 0 if none.
int64_t wait_flag(Flag& flag, uint32_t target, const WaitPolicy& policy);

}  // namespace omnibus
