#include "omnibus/compute/core/compute_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include "omnibus/base/common/status.h"

namespace omnibus {
namespace {

std::unique_ptr<ComputePool> make_pool(int32_t threads, bool pin = false) {
  auto pool = ComputePool::create(threads, pin);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return std::move(pool).value();
}

TEST(ComputePool, RunsEveryThreadOncePerRun) {
  for (const int32_t threads : {1, 2, 3, 5, 8}) {
    auto pool = make_pool(threads);
    ASSERT_EQ(pool->threads(), threads);
    std::vector<int32_t> calls(static_cast<size_t>(threads), 0);  // plain: run() must order the accesses
    for (int32_t i = 0; i < 500; ++i) {
      pool->parallel([&](int32_t thread, int32_t n) {
        EXPECT_EQ(n, threads);
        ++calls[static_cast<size_t>(thread)];
      });
    }
    for (const int32_t c : calls) EXPECT_EQ(c, 500) << threads << " threads";
  }
}

// Between two barriers each thread writes its own slot, after the second reads all others: any thread that
// passes a barrier early sees a stale round. Plain memory, so that TSan checks the ordering too.
TEST(ComputePool, BarrierSeparatesRounds) {
  for (const int32_t threads : {1, 2, 3, 4, 5, 7, 8}) {
    auto pool = make_pool(threads);
    constexpr int32_t kRounds = 300;
    std::vector<int32_t> slots(static_cast<size_t>(threads) * 64, -1);
    std::atomic<int32_t> wrong{0};
    for (int32_t repeat = 0; repeat < 3; ++repeat) {  // counters carry on from one run to the next
      pool->parallel([&](int32_t thread, int32_t n) {
        for (int32_t round = 0; round < kRounds; ++round) {
          slots[static_cast<size_t>(thread) * 64] = round;
          pool->barrier(thread);
          for (int32_t i = 0; i < n; ++i) {
            if (slots[static_cast<size_t>(i) * 64] != round) ++wrong;
          }
          pool->barrier(thread);
        }
      });
    }
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ComputePool, SleepsBetweenStepsAndWakes) {
  auto pool = make_pool(2);
  std::atomic<int32_t> count{0};
  for (int32_t i = 0; i < 20; ++i) {
    pool->parallel([&](int32_t, int32_t) { ++count; });
    // Longer than the spin: the worker is on its futex when the next step starts.
    struct timespec pause = {0, 300'000};
    nanosleep(&pause, nullptr);
  }
  EXPECT_EQ(count, 40);
}

// Number of CPUs that the calling thread may run on.
int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

// The creator of a pool starts the front end's threads: neither it nor they may be bound to a core.
TEST(ComputePool, PinsItsThreadsButNotItsCreator) {
  const int before = allowed_cpus();
  const int32_t cores = available_cores();
  auto pool = make_pool(0, true);
  EXPECT_EQ(pool->threads(), cores);
  std::vector<int> allowed(static_cast<size_t>(cores), 0);
  auto note = [&](int32_t thread, int32_t) { allowed[static_cast<size_t>(thread)] = allowed_cpus(); };
  pool->parallel(note);
  EXPECT_EQ(allowed[0], before);
  EXPECT_EQ(allowed_cpus(), before);
  std::thread other([&] { EXPECT_EQ(allowed_cpus(), before); });
  other.join();
  for (int32_t run = 0; run < 2; ++run) {
    std::thread runner([&] { pool->parallel(note); });
    runner.join();
    for (size_t i = 1; i < allowed.size(); ++i) EXPECT_EQ(allowed[i], 1) << "thread " << i;
    EXPECT_EQ(allowed[0], 1) << "the runner";
    pool->parallel(note);
    EXPECT_EQ(allowed[0], before) << "the creator";
  }
  pool.reset();
  EXPECT_EQ(available_cores(), cores);
}

TEST(ComputePool, RefusesAbsurdThreadCount) {
  const auto pool = ComputePool::create(1 << 20, false);
  EXPECT_EQ(pool.status().code(), StatusCode::kInvalidArgument);
}

TEST(ThreadRange, CoversWithoutGapAndBalanced) {
  for (int64_t n = 0; n < 70; ++n) {
    for (int32_t threads = 1; threads < 9; ++threads) {
      int64_t next = 0;
      for (int32_t t = 0; t < threads; ++t) {
        const ThreadRange r = thread_range(n, t, threads);
        EXPECT_EQ(r.begin, next);
        EXPECT_LE(r.end - r.begin, n / threads + 1);
        EXPECT_GE(r.end - r.begin, n / threads);
        next = r.end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

}  // namespace
}  // namespace omnibus
