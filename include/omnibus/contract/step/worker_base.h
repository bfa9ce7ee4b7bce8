// WorkerBase: one rank as the executor sees it. Local `Worker` and the proxy `RemoteWorker` implement it
// alike.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/contract/step/memory_plan.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/plan_digest.h"
#include "omnibus/contract/step/scheduler_output.h"

namespace omnibus {

// The ranks that step together, and what their communicators need. One epoch.
struct GroupSpec {
  Epoch epoch = 0;
  std::vector<int32_t> ranks;
  std::vector<std::string> comm_ids;  // per communicator of the group
};

// Between steps only.
struct ControlOp {
  enum class Kind { kReset, kSleep, kWake, kLoadAdapter, kUnloadAdapter };
  Kind kind = Kind::kReset;
  std::string argument;
};

struct WorkerProgress {
  StepId last_completed;
  uint64_t ticks = 0;  // moves while a step runs
};

// Call order: init, load, capacity, allocate_kv, join, then prepare/commit pairs. All from one thread, except
// abort and progress, which any thread may call at any time.
class WorkerBase {
 public:
  virtual ~WorkerBase() = default;

  virtual Status init() = 0;
  virtual Status load() = 0;
  // From shapes alone (meta device): callable before load().
  virtual StatusOr<MemoryPlan> capacity() = 0;
  virtual Status allocate_kv(const KVCacheConfig& config) = 0;
  virtual Status join(const GroupSpec& group) = 0;

  // Takes the plan into the mirror and answers with its digest; nothing is computed yet.
  virtual std::future<StatusOr<PlanDigest>> prepare(SchedulerOutput plan) = 0;
  // Runs the prepared step.
  virtual std::future<StatusOr<ModelRunnerOutput>> commit(StepId id) = 0;
  virtual void abort(Epoch epoch) noexcept = 0;
  virtual WorkerProgress progress() const = 0;
  virtual Status control(const ControlOp& op) = 0;
};

}  // namespace omnibus
