// Memory that runs out on the engine thread while a request is handed to the scheduler: every choice still
// gets its end. The global operator new of this program fails on demand.
#include <atomic>
#include <cstdlib>
#include <new>

#include "engine_fixture.h"

namespace {

// Which allocation of a scheduler's sequence, counted on this thread, fails; 0: none.
thread_local int failing_sequence = 0;

// A sequence holds a Request and little more; lists of requests have a multiple of its size.
bool is_sequence(std::size_t size) {
  return size > sizeof(omnibus::Request) && size < 2 * sizeof(omnibus::Request);
}

}  // namespace

void* operator new(std::size_t size) {
  if (failing_sequence > 0 && is_sequence(size) && --failing_sequence == 0) throw std::bad_alloc();
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace omnibus {
namespace {

TEST(EngineMemory, NoEndIsLostWhenARequestCannotBeTaken) {
  for (const int nth : {1, 2, 3}) {
    std::atomic<bool> in_step{false}, submitted{false};
    fakes::FakeWorkerOptions options;
    options.before_commit = [&](const SchedulerOutput& plan) -> Status {
      if (plan.rows[0].id == 0) return absl::OkStatus();  // the warm-up
      in_step = true;
      in_step.notify_all();
      submitted.wait(false);
      failing_sequence = nth;
      return absl::OkStatus();
    };
    EngineFixture f(options);
    ASSERT_TRUE(f.status.ok());
    GenerateRequest first = generate("x", 50);
    first.sampling.ignore_eos = true;
    ASSERT_TRUE(f.engine->submit(first, f.collector.sink()).ok());
    in_step.wait(false);
    GenerateRequest second = generate("y", 50);
    second.n = 3;
    const auto id = f.engine->submit(second, f.collector.sink());
    ASSERT_TRUE(id.ok());
    submitted = true;
    submitted.notify_all();
    ASSERT_TRUE(f.collector.wait(4)) << "an end is lost; allocation " << nth;
    for (const auto& [key, result] : f.collector.all()) {
      EXPECT_EQ(result.ends, 1);
      EXPECT_EQ(result.last.finish_reason, FinishReason::kError);
    }
    EXPECT_EQ(f.engine->health().reason.substr(0, 7), "failed:");
    EXPECT_TRUE(f.engine->drain(std::chrono::seconds(10)));
  }
}

}  // namespace
}  // namespace omnibus
