// The engine without memory: any allocation of a thread that asks for it may fail, and those behind it.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "core_rig.h"

namespace {

// The first `after` allocations succeed, then `count` fail, then all succeed.
struct Shortage {
  int64_t after = 0;
  int64_t count = 1;
  std::atomic<bool> is_felt{false};
};
thread_local Shortage* shortage = nullptr;  // of this thread

bool has_memory() {
  if (shortage == nullptr) return true;
  if (shortage->after-- > 0) return true;
  if (shortage->count-- <= 0) {
    shortage = nullptr;
    return true;
  }
  shortage->is_felt = true;
  return false;
}

}  // namespace

// Not inlined: the compiler would see one of a pair and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = has_memory() ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

constexpr int64_t kForever = 1 << 30;

// Allocates nothing where it is called.
struct Ends {
  OutputSink sink() {
    return [this](const RequestOutput& output) {
      if (!output.finish_reason) return;
      ++ends[static_cast<size_t>(output.index)];
      code = output.status.code();
    };
  }
  std::array<int, 3> ends{};
  StatusCode code = StatusCode::kOk;
};

std::unique_ptr<Executor> executor() {
  FakeWorkerOptions options;
  options.vocab_size = fakes::make_piece_tokenizer({})->vocab_size();
  return make_uniproc_executor(std::make_unique<fakes::FakeWorker>(std::move(options)));
}

// One request comes in beside another: whatever allocation fails for it, it alone ends.
TEST(OutOfMemory, EndsOnlyTheRequestThatCouldNotBeTakenIn) {
  const SteadyClock clock;
  for (const int64_t count : {int64_t{1}, kForever}) {
    bool is_felt = true;
    int64_t after = 0;
    for (; is_felt; ++after) {
      Collector other;
      Ends ends;
      CoreRig rig(executor(), &clock);
      GenerateRequest r = generate("goes on", 20);
      r.sampling.ignore_eos = true;
      rig.core->handle(*rig.admit(r, other.sink()));
      for (int i = 0; i < 3; ++i) rig.step();
      r.n = 3;
      const auto command = rig.admit(r, ends.sink());
      Shortage plan{.after = after, .count = count};
      shortage = &plan;
      const bool more = rig.core->handle(*command);
      shortage = nullptr;
      EXPECT_TRUE(more);
      is_felt = plan.is_felt;
      rig.run_until_idle();
      ASSERT_FALSE(rig.core->failed()) << status_message(rig.state.failure());
      EXPECT_EQ(ends.ends, (std::array<int, 3>{1, 1, 1})) << after;
      EXPECT_EQ(ends.code, is_felt ? StatusCode::kUnavailable : StatusCode::kOk) << after;
      ASSERT_EQ(other.all().size(), 1U);
      EXPECT_EQ(other.all().begin()->second.tokens.size(), 20U);
      EXPECT_EQ(rig.ledger->open_requests().sequences, 0);
      EXPECT_TRUE(rig.core->check_integrity().ok());
    }
    EXPECT_GT(after, 10) << "allocations of a request";
  }
}

// In a step, in what follows it, and in how the engine ends its requests: what it cannot do then it does when
// it is next asked something.
TEST(OutOfMemory, EveryRequestEndsOnceWhateverFails) {
  int failed = 0;
  for (const int64_t count : {1, 3, 60}) {
    for (int64_t after = 0; after < 120; after += count == 1 ? 1 : 3) {
      Shortage plan{.after = after, .count = count};
      FakeWorkerOptions options;
      options.before_commit = [&](const SchedulerOutput& step) {
        if (step.id.seq == 6) shortage = &plan;  // on the engine's thread
        return absl::OkStatus();
      };
      std::array<std::atomic<int>, 5> ends{};
      std::atomic<int> ended{0};
      EngineFixture f(options);
      ASSERT_TRUE(f.status.ok()) << f.status;
      GenerateRequest r = generate("x", 12);
      r.sampling.ignore_eos = true;
      r.n = 5;
      const auto id = f.engine->submit(r, [&](const RequestOutput& output) {
        if (!output.finish_reason) return;
        ++ends[static_cast<size_t>(output.index)];
        ++ended;
      });
      ASSERT_TRUE(id.ok());
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (ended < 5 && std::chrono::steady_clock::now() < give_up) {
        if (!f.engine->health().live()) {
          ASSERT_TRUE(f.engine->set_limits({}).ok());
        }
        std::this_thread::yield();
      }
      if (!f.engine->health().live()) ++failed;
      f.engine.reset();
      for (const auto& n : ends) ASSERT_EQ(n, 1) << count << " from " << after << " on";
    }
  }
  EXPECT_GT(failed, 60);
}

}  // namespace
}  // namespace omnibus
