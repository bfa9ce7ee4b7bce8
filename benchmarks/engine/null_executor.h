// NullExecutor: an executor without a model. Each row that samples gets the same token, at once. The time it
// takes itself is kept apart, so that what is left of a step is the engine's.
#pragma once

#include <ctime>

#include "omnibus/control/executor/executor.h"

namespace omnibus {

// CPU time of the calling thread.
inline int64_t thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

class NullExecutor final : public Executor {
 public:
  NullExecutor(int32_t num_blocks, int32_t depth) : num_blocks_(num_blocks), depth_(depth) {}

  StatusOr<MemoryPlan> start() override;
  std::future<StatusOr<ModelRunnerOutput>> execute(SchedulerOutput plan) override;
  int32_t max_concurrent_batches() const override { return depth_; }
  Epoch epoch() const override { return 1; }
  void set_failure_callback(std::function<void(Status)>) override {}
  Status control(const ControlOp&) override { return absl::OkStatus(); }

  int64_t cpu_ns() const { return cpu_ns_; }
  int64_t tokens() const { return tokens_; }

 private:
  const int32_t num_blocks_;
  const int32_t depth_;
  int64_t cpu_ns_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace omnibus
