// ThreadedExecutor: the single worker of this process on a thread of its own, so that the next step can be
// planned and handed over while one runs. Steps run in the order in which they came, each prepared after the
// one before it was committed: a FromStep source is then the last token that the worker's mirror has.
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "omnibus/base/common/queue.h"
#include "omnibus/control/executor/executor.h"

#include "stepped_worker.h"

namespace omnibus {
namespace {

using StepResult = StatusOr<ModelRunnerOutput>;

class ThreadedExecutor final : public Executor {
 public:
  explicit ThreadedExecutor(std::unique_ptr<WorkerBase> worker)
      : worker_(std::make_unique<SteppedWorker>(std::move(worker))), thread_([this] { run(); }) {}

  ~ThreadedExecutor() override {
    jobs_.close();
    thread_.join();
  }

  StatusOr<MemoryPlan> start() override {
    StartJob job;
    std::future<StatusOr<MemoryPlan>> plan = job.plan.get_future();
    if (!jobs_.try_push(Job(std::move(job)))) return too_many();
    return plan.get();
  }

  std::future<StepResult> execute(SchedulerOutput plan) override {
    if (in_flight_ >= kDepth) return refused();
    StepJob job;
    job.plan = std::move(plan);
    std::future<StepResult> result = job.result.get_future();
    if (!jobs_.try_push(Job(std::move(job)))) return refused();
    ++in_flight_;  // it may be done by now: below zero for a moment
    return result;
  }

  int32_t max_concurrent_batches() const override { return kDepth; }
  Epoch epoch() const override { return SteppedWorker::kEpoch; }

  void set_failure_callback(std::function<void(Status)> callback) override {
    std::lock_guard lock(mutex_);
    on_failure_ = std::move(callback);
  }

  // Waits for the steps before it.
  Status control(const ControlOp& op) override {
    ControlJob job;
    job.op = op;
    std::future<Status> done = job.done.get_future();
    if (!jobs_.try_push(Job(std::move(job)))) return too_many();
    return done.get();
  }

 private:
  static constexpr int32_t kDepth = 2;  // one step runs, one is ready to follow

  struct StartJob {
    std::promise<StatusOr<MemoryPlan>> plan;
  };
  struct StepJob {
    SchedulerOutput plan;
    std::promise<StepResult> result;
  };
  struct ControlJob {
    ControlOp op;
    std::promise<Status> done;
  };
  using Job = std::variant<StartJob, StepJob, ControlJob>;

  static Status too_many() {
    return absl::ResourceExhaustedError("more steps are in flight than the executor takes");
  }

  static std::future<StepResult> refused() {
    std::promise<StepResult> promise;
    promise.set_value(too_many());
    return promise.get_future();
  }

  void run() {
    while (std::optional<Job> job = jobs_.pop()) std::visit([this](auto& j) { carry_out(j); }, *job);
    worker_.reset();  // on the thread that drove it
  }

  void carry_out(StartJob& job) { job.plan.set_value(worker_->start()); }
  void carry_out(ControlJob& job) { job.done.set_value(worker_->control(job.op)); }
  void carry_out(StepJob& job) {
    StepResult result = worker_->step(std::move(job.plan));
    const Status status = result.status();
    --in_flight_;  // first: who has the result may hand over the next
    job.result.set_value(std::move(result));
    if (!status.ok()) tell(status);
  }

  // Who cannot be told, for want of memory, finds the failure in the step's result.
  void tell(const Status& failure) {
    std::lock_guard lock(mutex_);
    try {
      if (on_failure_) on_failure_(failure);
    } catch (const std::exception&) {
    }
  }

  std::unique_ptr<SteppedWorker> worker_;  // the thread's
  BoundedQueue<Job> jobs_{kDepth + 1};     // and a control operation
  std::atomic<int32_t> in_flight_{0};      // steps handed over and not done
  std::mutex mutex_;
  std::function<void(Status)> on_failure_;
  std::thread thread_;  // last: starts when all the rest is there
};

}  // namespace

std::unique_ptr<Executor> make_threaded_executor(std::unique_ptr<WorkerBase> worker) {
  return std::make_unique<ThreadedExecutor>(std::move(worker));
}

}  // namespace omnibus
