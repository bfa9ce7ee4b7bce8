#include "flag_wait.h"

#include <chrono>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace omnibus {
namespace {

bool reached(uint32_t value, uint32_t target) { return static_cast<int32_t>(value - target) >= 0; }

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using SteadyTime = std::chrono::steady_clock;

}  // namespace

void raise_flag(Flag& flag, uint32_t value) {
  flag.value.store(value, std::memory_order_seq_cst);
  if (flag.sleepers.load(std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, &flag.value, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  }
}

int64_t wait_flag(Flag& flag, uint32_t target, const WaitPolicy& policy) {
  // The first looks need no clock: a rendezvous takes about 100 ns.
  constexpr int32_t kFirstLooks = 64;
  for (int32_t i = 0; i < (policy.spin_us > 0 ? kFirstLooks : 1); ++i) {
    if (reached(flag.value.load(std::memory_order_acquire), target)) return 0;
    pause_cpu();
  }
  const auto start = SteadyTime::now();
  const auto spin_end = start + std::chrono::microseconds(policy.spin_us);
  while (SteadyTime::now() < spin_end) {
    for (int32_t i = 0; i < kFirstLooks; ++i) {
      if (reached(flag.value.load(std::memory_order_acquire), target)) return 0;
      pause_cpu();
    }
  }
  for (;;) {
    const uint32_t seen = flag.value.load(std::memory_order_acquire);
    if (reached(seen, target)) break;
    if (!policy.sleep) {
      sched_yield();
      continue;
    }
    flag.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (flag.value.load(std::memory_order_seq_cst) == seen) {
      syscall(SYS_futex, &flag.value, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
    flag.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyTime::now() - start).count();
}

}  // namespace omnibus
