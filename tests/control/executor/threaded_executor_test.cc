#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "omnibus/base/common/clock.h"
#include "omnibus/control/executor/executor.h"

#include "executor_steps.h"

namespace omnibus {
namespace {

using fakes::FakeWorker;
using fakes::FakeWorkerOptions;

constexpr auto kHang = std::chrono::seconds(20);

std::unique_ptr<Executor> started(FakeWorkerOptions options) {
  auto executor = make_threaded_executor(std::make_unique<FakeWorker>(std::move(options)));
  const auto plan = executor->start();
  EXPECT_TRUE(plan.ok()) << plan.status();
  return executor;
}

// A worker that stands in a step until it is let go.
struct Gate {
  Status stand() {
    std::unique_lock lock(mutex);
    ++arrived;
    changed.notify_all();
    changed.wait_for(lock, kHang, [&] { return open; });
    return absl::OkStatus();
  }
  void release() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  bool wait_arrived() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kHang, [&] { return arrived > 0; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int arrived = 0;
};

TEST(ThreadedExecutor, TakesAStepWhileOneRunsAndRunsThemInOrder) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = [&](const SchedulerOutput&) { return gate.stand(); };
  auto executor = started(options);
  EXPECT_EQ(executor->max_concurrent_batches(), 2);
  auto first = executor->execute(one_row(1));
  ASSERT_TRUE(gate.wait_arrived());
  auto second = executor->execute(one_row(2));
  EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(second.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.release();
  const auto a = first.get();
  const auto b = second.get();
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a->id.seq, 1U);
  EXPECT_EQ(b->id.seq, 2U);
  EXPECT_EQ(gate.arrived, 2);
}

TEST(ThreadedExecutor, ThirdStepIsRefusedUntilOneIsDone) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = [&](const SchedulerOutput&) { return gate.stand(); };
  auto executor = started(options);
  auto first = executor->execute(one_row(1));
  ASSERT_TRUE(gate.wait_arrived());
  auto second = executor->execute(one_row(2));
  auto third = executor->execute(one_row(3));
  ASSERT_EQ(third.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it was taken";
  EXPECT_EQ(third.get().status().code(), StatusCode::kResourceExhausted);
  gate.release();
  EXPECT_TRUE(first.get().ok());
  auto again = executor->execute(one_row(3));
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(again.get().ok());
}

// Whoever takes the results in late, and both at once, still hears how long each step had the worker.
TEST(ThreadedExecutor, StepsAreMeasuredWhereTheyRun) {
  const SteadyClock clock;
  std::atomic<int64_t> stood[2] = {0, 0};
  FakeWorkerOptions options;
  options.before_commit = [&](const SchedulerOutput& plan) {
    const MonotonicNs began = clock.now_ns();
    while (clock.now_ns() - began < 2'000'000) std::this_thread::yield();
    stood[plan.id.seq - 1] = clock.now_ns() - began;
    return absl::OkStatus();
  };
  auto executor = started(options);
  const MonotonicNs began = clock.now_ns();
  auto first = executor->execute(one_row(1));
  auto second = executor->execute(one_row(2));
  ASSERT_EQ(second.wait_for(kHang), std::future_status::ready);
  const int64_t both = clock.now_ns() - began;
  const auto a = first.get();
  const auto b = second.get();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_GE(a->duration_ns, stood[0]);
  EXPECT_GE(b->duration_ns, stood[1]);
  EXPECT_LE(a->duration_ns + b->duration_ns, both);
}

TEST(ThreadedExecutor, CallbackThatThrowsLeavesTheFailureInTheResult) {
  FakeWorkerOptions options;
  options.before_commit = [](const SchedulerOutput&) { return absl::UnavailableError("gone"); };
  auto executor = started(options);
  executor->set_failure_callback([](const Status&) { throw std::bad_alloc(); });
  for (uint64_t seq : {1, 2})
    EXPECT_EQ(executor->execute(one_row(seq)).get().status(), absl::UnavailableError("gone"));
}

TEST(ThreadedExecutor, FailureIsFinalAndTold) {
  std::promise<Status> told;
  FakeWorkerOptions options;
  options.before_commit = [](const SchedulerOutput& plan) {
    return plan.id.seq == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  auto executor = started(options);
  executor->set_failure_callback([&, first = true](const Status& why) mutable {
    if (first) told.set_value(why);
    first = false;
  });
  EXPECT_TRUE(executor->execute(one_row(1)).get().ok());
  for (uint64_t seq : {2, 3})
    EXPECT_EQ(executor->execute(one_row(seq)).get().status(), absl::UnavailableError("gone"));
  auto why = told.get_future();
  ASSERT_EQ(why.wait_for(kHang), std::future_status::ready);
  EXPECT_EQ(why.get(), absl::UnavailableError("gone"));
}

TEST(ThreadedExecutor, ExceptionBecomesAStatus) {
  FakeWorkerOptions options;
  options.before_commit = [](const SchedulerOutput&) -> Status { throw std::runtime_error("bang"); };
  auto executor = started(options);
  const auto output = executor->execute(one_row(1)).get();
  EXPECT_EQ(output.status().code(), StatusCode::kInternal);
  EXPECT_NE(output.status().message().find("bang"), absl::string_view::npos);
}

// A worker may bind itself to the thread that drives it: one thread from its start to its end.
class ThreadRecorder final : public WorkerBase {
 public:
  explicit ThreadRecorder(std::set<std::thread::id>* threads) : threads_(threads), worker_({}) { note(); }
  ~ThreadRecorder() override { note(); }
  Status init() override { return note(), worker_.init(); }
  Status load() override { return note(), worker_.load(); }
  StatusOr<MemoryPlan> capacity() override { return note(), worker_.capacity(); }
  Status allocate_kv(const KVCacheConfig& config) override { return note(), worker_.allocate_kv(config); }
  Status join(const GroupSpec& group) override { return note(), worker_.join(group); }
  std::future<StatusOr<PlanDigest>> prepare(SchedulerOutput plan) override {
    return note(), worker_.prepare(std::move(plan));
  }
  std::future<StatusOr<ModelRunnerOutput>> commit(StepId id) override { return note(), worker_.commit(id); }
  void abort(Epoch epoch) noexcept override { worker_.abort(epoch); }
  WorkerProgress progress() const override { return worker_.progress(); }
  Status control(const ControlOp& op) override { return note(), worker_.control(op); }

 private:
  void note() {
    if (std::this_thread::get_id() != creator_) threads_->insert(std::this_thread::get_id());
  }
  const std::thread::id creator_ = std::this_thread::get_id();
  std::set<std::thread::id>* const threads_;
  FakeWorker worker_;
};

TEST(ThreadedExecutor, OneThreadDrivesTheWorkerFromStartToEnd) {
  std::set<std::thread::id> threads;
  {
    auto executor = make_threaded_executor(std::make_unique<ThreadRecorder>(&threads));
    ASSERT_TRUE(executor->start().ok());
    ASSERT_TRUE(executor->execute(one_row(1)).get().ok());
    ASSERT_TRUE(executor->control({}).ok());
    // A step nobody waits for is finished before the worker goes.
    executor->execute(one_row(2));
  }
  EXPECT_EQ(threads.size(), 1U);
}

}  // namespace
}  // namespace omnibus
