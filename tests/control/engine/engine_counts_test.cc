// What others see of the engine: counts while a step runs, steps as they were measured, nothing of the
// warm-up.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core_rig.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

constexpr auto kHang = std::chrono::seconds(20);

// Sum over all label sets; -1: no such metric.
double metric(const MetricsRegistry& registry, const std::string& name) {
  const std::string text = registry.serialize();
  double sum = 0;
  bool is_there = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name + "{") && !line.starts_with(name + " ")) continue;
    sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
    is_there = true;
  }
  return is_there ? sum : -1;
}

// Once closed, steps stand still until it is released.
struct Gate {
  std::function<Status(const SchedulerOutput&)> hook() {
    return [this](const SchedulerOutput&) {
      std::unique_lock lock(mutex);
      if (!open) is_reached = true;
      changed.notify_all();
      changed.wait_for(lock, kHang, [&] { return open; });
      return absl::OkStatus();
    };
  }
  void set(bool to) {
    std::lock_guard lock(mutex);
    open = to;
    changed.notify_all();
  }
  bool wait_reached() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kHang, [&] { return is_reached; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;
  bool is_reached = false;
};

TEST(EngineCounts, HoldWhileAStepRuns) {
  for (const bool async : {false, true}) {
    Gate gate;
    FakeWorkerOptions options;
    options.before_commit = gate.hook();
    EngineConfig config = EngineFixture::default_config();
    config.async_scheduling = async;
    config.max_num_seqs = 2;
    EngineFixture f(options, config);
    ASSERT_TRUE(f.status.ok()) << f.status;
    gate.set(false);
    GenerateRequest r = generate("seventeen letters", 5);
    r.n = 3;
    ASSERT_TRUE(f.engine->submit(r, f.collector.sink()).ok());
    ASSERT_TRUE(gate.wait_reached());
    EXPECT_EQ(f.engine->health().running, 2);
    EXPECT_EQ(f.engine->health().waiting, 1);
    EXPECT_GE(f.engine->health().used_blocks, 4);
    EXPECT_EQ(metric(f.metrics, "vllm:num_requests_running"), 2);
    EXPECT_EQ(metric(f.metrics, "vllm:num_requests_waiting"), 1);
    EXPECT_GT(metric(f.metrics, "vllm:kv_cache_usage_perc"), 0);
    gate.set(true);
    ASSERT_TRUE(f.collector.wait(3));
  }
}

TEST(EngineCounts, WarmUpIsNobodysTraffic) {
  for (const bool async : {false, true}) {
    EngineConfig config = EngineFixture::default_config();
    config.async_scheduling = async;
    EngineFixture f({}, config);
    ASSERT_TRUE(f.status.ok()) << f.status;
    const std::vector<std::string> counts = {"omnibus_steps_total",
                                             "omnibus_step_duration_seconds_count",
                                             "omnibus_step_host_seconds_count",
                                             "vllm:iteration_tokens_total_count",
                                             "vllm:prefix_cache_queries_total",
                                             "vllm:prefix_cache_hits_total",
                                             "vllm:prompt_tokens_total",
                                             "vllm:generation_tokens_total",
                                             "vllm:request_success_total",
                                             "vllm:num_requests_running",
                                             "vllm:kv_cache_usage_perc"};
    for (const std::string& name : counts) EXPECT_EQ(metric(f.metrics, name), 0) << name;
    ASSERT_TRUE(f.engine->submit(generate("four", 1), f.collector.sink()).ok());
    ASSERT_TRUE(f.collector.wait(1));
    EXPECT_EQ(metric(f.metrics, "omnibus_steps_total"), 1);
    EXPECT_EQ(metric(f.metrics, "vllm:prefix_cache_queries_total"), 4);
  }
}

std::unique_ptr<Executor> executor() {
  FakeWorkerOptions options;
  options.vocab_size = fakes::make_piece_tokenizer({})->vocab_size();
  return make_uniproc_executor(std::make_unique<fakes::FakeWorker>(std::move(options)));
}

// Says of each step that it took 8 ms.
class MeasuredExecutor final : public Executor {
 public:
  explicit MeasuredExecutor(int32_t depth) : depth_(depth), inner_(executor()) {}
  StatusOr<MemoryPlan> start() override { return inner_->start(); }
  std::future<StatusOr<ModelRunnerOutput>> execute(SchedulerOutput plan) override {
    auto output = inner_->execute(std::move(plan)).get();
    if (output.ok()) output->duration_ns = 8'000'000;
    std::promise<StatusOr<ModelRunnerOutput>> promise;
    promise.set_value(std::move(output));
    return promise.get_future();
  }
  int32_t max_concurrent_batches() const override { return depth_; }
  Epoch epoch() const override { return inner_->epoch(); }
  void set_failure_callback(std::function<void(Status)>) override {}
  Status control(const ControlOp& op) override { return inner_->control(op); }

 private:
  const int32_t depth_;
  const std::unique_ptr<Executor> inner_;
};

// The engine's thread may wake late and find the next step done, too: no time passes between the two.
TEST(EngineCounts, StepTakenInLateIsNoShortStep) {
  const ManualClock clock;
  for (const int32_t depth : {1, 2}) {
    Collector collector;
    CoreRig rig(std::make_unique<MeasuredExecutor>(depth), &clock, depth);
    GenerateRequest r = generate("hello", 40);
    r.sampling.ignore_eos = true;
    rig.core->handle(*rig.admit(r, collector.sink()));
    rig.run_until_idle();
    ASSERT_TRUE(collector.wait(1));
    EXPECT_NEAR(rig.core->step_cost().predict_ns(1, 20), 8e6, 1e3);
    const double steps = metric(rig.registry, "omnibus_steps_total");
    EXPECT_GE(steps, 40);
    EXPECT_NEAR(metric(rig.registry, "omnibus_step_duration_seconds_sum"), steps * 0.008, 1e-6);
  }
}

class SharedClock final : public Clock {
 public:
  MonotonicNs now_ns() const override { return now; }
  std::atomic<MonotonicNs> now{1};
};

// A client that gives up at its deadline: the engine hears of both at once.
TEST(EngineCounts, CancelBehindTheDeadlineIsAnExpiry) {
  for (const bool late : {true, false}) {
    Gate gate;
    FakeWorkerOptions options;
    options.before_commit = gate.hook();
    SharedClock clock;
    EngineFixture f(options, EngineFixture::default_config(), &clock);
    gate.set(false);
    GenerateRequest r = generate("x", 100);
    r.sampling.ignore_eos = true;
    r.deadline = clock.now + 1000;
    const auto id = f.engine->submit(r, f.collector.sink());
    ASSERT_TRUE(gate.wait_reached());
    if (late) clock.now += 2000;
    f.engine->cancel(*id);
    gate.set(true);
    ASSERT_TRUE(f.collector.wait(1));
    EXPECT_EQ(f.collector.get(*id).last.status.code(),
              late ? StatusCode::kDeadlineExceeded : StatusCode::kCancelled);
    EXPECT_EQ(metric(f.metrics, "omnibus_requests_expired_total"), late ? 1 : 0);
  }
}

}  // namespace
}  // namespace omnibus
