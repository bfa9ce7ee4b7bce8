#include "omnibus/compute/core/compute_pool.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include "flag_wait.h"
#include "topology.h"

namespace omnibus {
namespace {

constexpr int32_t kMaxThreads = 1024;
constexpr int32_t kAllToAllThreads = 4;  // up to here each thread watches all others; above, log2 rounds
constexpr int32_t kMaxRounds = 10;       // 2^10 = kMaxThreads
constexpr int64_t kStallNs = 1'000'000;

void pin_this_thread(int32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  // A failure (the mask changed under us) only costs locality.
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// What one thread shares with the others. Each field is on lines of its own.
struct ThreadState {
  Flag done;                             // last task finished
  std::array<Flag, kMaxRounds> arrived;  // barriers passed, by round
  alignas(128) uint32_t barriers = 0;    // own count; only its thread touches it
  std::atomic<uint64_t> stalls{0};
};

class FlagComputePool final : public ComputePool {
 public:
  FlagComputePool(int32_t threads, bool oversubscribed)
      : n_(threads),
        states_(static_cast<size_t>(threads)),
        in_step_(oversubscribed ? WaitPolicy{0, true} : WaitPolicy{50, false}),
        between_steps_(oversubscribed ? WaitPolicy{0, true} : WaitPolicy{40, true}) {}

  ~FlagComputePool() override {
    task_ = nullptr;
    raise_flag(start_, ++epoch_);
    for (std::thread& t : workers_) t.join();
  }

  Status start(const std::vector<int32_t>& cpus) {
    workers_.reserve(static_cast<size_t>(n_ - 1));
    try {
      for (int32_t i = 1; i < n_; ++i) {
        const int32_t cpu = cpus.empty() ? -1 : cpus[static_cast<size_t>(i) % cpus.size()];
        workers_.emplace_back([this, i, cpu] { work(i, cpu); });
      }
    } catch (const std::system_error& e) {
      return absl::ResourceExhaustedError(fmt::format("compute pool: cannot start a thread: {}", e.what()));
    }
    if (!cpus.empty()) first_cpu_ = cpus[0];
    return {};
  }

  int32_t threads() const override { return n_; }

  void run(Task task, void* context) override {
    if (first_cpu_ >= 0) adopt_runner();
    if (n_ == 1) {
      task(context, 0, 1);
      return;
    }
    task_ = task;
    context_ = context;
    raise_flag(start_, ++epoch_);
    task(context, 0, n_);
    for (int32_t i = 1; i < n_; ++i) wait(0, state(i).done, epoch_);
  }

  void barrier(int32_t thread) override {
    if (n_ == 1) return;
    ThreadState& own = state(thread);
    const uint32_t step = ++own.barriers;
    if (n_ <= kAllToAllThreads) {
      raise_flag(own.arrived[0], step);
      for (int32_t i = 0; i < n_; ++i) {
        if (i != thread) wait(thread, state(i).arrived[0], step);
      }
      return;
    }
    // Dissemination (Hensgen, Finkel, Manber 1988): after round r each thread has heard of 2^(r+1) others.
    for (int32_t round = 0, reach = 1; reach < n_; ++round, reach *= 2) {
      raise_flag(own.arrived[static_cast<size_t>(round)], step);
      const int32_t from = (thread + n_ - reach) % n_;
      wait(thread, state(from).arrived[static_cast<size_t>(round)], step);
    }
  }

  uint64_t stalls() const override {
    uint64_t sum = 0;
    for (const ThreadState& s : states_) sum += s.stalls.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  ThreadState& state(int32_t i) { return states_[static_cast<size_t>(i)]; }

  // The creator stays free: it goes on to start threads of other kinds, which would inherit its mask.
  void adopt_runner() {
    const pthread_t self = pthread_self();
    if (pthread_equal(self, runner_) != 0) return;
    runner_ = self;
    if (pthread_equal(self, creator_) == 0) pin_this_thread(first_cpu_);
  }

  void wait(int32_t thread, Flag& flag, uint32_t target) {
    if (wait_flag(flag, target, in_step_) > kStallNs) {
      state(thread).stalls.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void work(int32_t thread, int32_t cpu) {
    if (cpu >= 0) pin_this_thread(cpu);
    for (uint32_t epoch = 1;; ++epoch) {
      wait_flag(start_, epoch, between_steps_);
      if (task_ == nullptr) return;
      task_(context_, thread, n_);
      raise_flag(state(thread).done, epoch);
    }
  }

  const int32_t n_;
  std::vector<ThreadState> states_;
  const WaitPolicy in_step_;
  const WaitPolicy between_steps_;
  Flag start_;
  alignas(128) uint32_t epoch_ = 0;
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::vector<std::thread> workers_;
  const pthread_t creator_ = pthread_self();
  pthread_t runner_ = creator_;  // the thread of the last run()
  int32_t first_cpu_ = -1;       // of thread 0; -1: no pinning
};

}  // namespace

StatusOr<std::unique_ptr<ComputePool>> ComputePool::create(int32_t threads, bool pin) {
  if (threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        fmt::format("compute pool: {} threads asked, at most {}", threads, kMaxThreads));
  }
  const int32_t cores = available_cores();
  const int32_t n = threads > 0 ? threads : cores;
  const std::vector<int32_t> cpus = pin ? physical_cores() : std::vector<int32_t>{};
  auto pool = std::make_unique<FlagComputePool>(n, n > cores);
  OMNIBUS_RETURN_IF_ERROR(pool->start(cpus));
  return pool;
}

}  // namespace omnibus
