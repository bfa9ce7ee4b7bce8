// ComputePool: the persistent, pinned threads of one CPU rank. The caller is thread 0; between the ranges of
// one run() nothing sleeps; between steps threads spin briefly, then wait on a futex. No spinning when the
// machine has fewer free cores than threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

#include "omnibus/base/common/status.h"

namespace omnibus {

class ComputePool {
 public:
  // threads <= 0: physical cores within the affinity mask and the cgroup quota. `pin`: thread i to the i-th
  // such core. The thread that calls run() is thread 0; it is pinned, for good, at its first run() unless it
  // is the one that created the pool, whose mask never changes: threads it starts later inherit no pin.
  static StatusOr<std::unique_ptr<ComputePool>> create(int32_t threads, bool pin);
  virtual ~ComputePool() = default;

  virtual int32_t threads() const = 0;

  // A plain function pointer and a context: no allocation in a step.
  using Task = void (*)(void* context, int32_t thread, int32_t threads);
  // Runs task on every thread, returns when all are done. From the owning thread only; not re-entrant.
  virtual void run(Task task, void* context) = 0;
  // Inside run(): all threads meet. Every thread must call it the same number of times.
  virtual void barrier(int32_t thread) = 0;
  // Waits that lasted more than 1 ms (omnibus_cpu_barrier_stall_total).
  virtual uint64_t stalls() const = 0;

  template <typename F>
  void parallel(F&& body) {
    run([](void* context, int32_t thread,
           int32_t threads) { (*static_cast<std::remove_reference_t<F>*>(context))(thread, threads); },
        &body);
  }
};

// Contiguous share of [0, n) for `thread` of `threads`; sizes differ by at most one; independent of timing.
struct ThreadRange {
  int64_t begin = 0, end = 0;
};
constexpr ThreadRange thread_range(int64_t n, int32_t thread, int32_t threads) {
  return {n * thread / threads, n * (thread + 1) / threads};
}

// Cores that compute may use: physical cores in the affinity mask, limited by the cgroup's CPU quota; >= 1.
int32_t available_cores();

}  // namespace omnibus
