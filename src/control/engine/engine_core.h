// EngineCore: the engine thread. It owns scheduler and KV bookkeeping and does schedule → execute → update,
// over and over. It blocks on its inbox and on the step in flight, and on nothing else.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "omnibus/base/common/queue.h"
#include "omnibus/control/executor/executor.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "engine_metrics.h"
#include "output_processor.h"
#include "parent_request.h"
#include "request_ledger.h"

namespace omnibus {

struct SubmitCommand {
  std::shared_ptr<const ParentRequest> parent;
  std::vector<Request> choices;
};
struct CancelCommand {
  RequestId id = 0;  // of the parent
  int32_t n = 0;
};
// A stop string was found in output token n_tokens - 1.
struct FinishCommand {
  RequestId id = 0;
  int32_t n_tokens = 0;
};
struct AbortAllCommand {
  Status why;
};
struct ResetPrefixCacheCommand {
  std::shared_ptr<std::promise<void>> done;
};
struct FailCommand {
  Status why;
};
struct StopCommand {
  Status why;
};
using EngineCommand = std::variant<SubmitCommand, CancelCommand, FinishCommand, AbortAllCommand,
                                   ResetPrefixCacheCommand, FailCommand, StopCommand>;
using EngineInbox = BoundedQueue<std::unique_ptr<EngineCommand>>;

// What the engine thread shows to others; any thread reads.
struct EngineState {
  std::atomic<int32_t> running{0}, waiting{0}, used_blocks{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<MonotonicNs> busy_since_ns{0};  // start of the present turn; 0: waiting for work

  Status failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  void set_failure(Status why) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(why);
  }

 private:
  mutable std::mutex mutex_;
  Status failure_;
};

// What the core works with; all outlive it.
struct EngineCoreParts {
  Scheduler* scheduler = nullptr;
  Executor* executor = nullptr;
  OutputProcessor* outputs = nullptr;
  RequestLedger* ledger = nullptr;
  EngineInbox* inbox = nullptr;
  EngineState* state = nullptr;
  const Clock* clock = nullptr;
  int32_t vocab_size = 0;
  bool check_integrity = false;  // after every step
};

class EngineCore {
 public:
  EngineCore(EngineCoreParts parts, EngineMetrics metrics) : p_(parts), metrics_(std::move(metrics)) {}

  // Real steps on a dummy request, a prefill and a decode, before the first client's. Not while run() runs.
  Status warm_up();
  // The engine thread's body; returns after a StopCommand. No exception leaves it: one fails the engine, and
  // from then on every request is answered with an error.
  void run();

 private:
  bool turn();  // false: stop
  // Each is false for: stop.
  bool handle(SubmitCommand& command);
  bool handle(const CancelCommand& command);
  bool handle(const FinishCommand& command);
  bool handle(const AbortAllCommand& command);
  bool handle(const ResetPrefixCacheCommand& command);
  bool handle(const FailCommand& command);
  bool handle(const StopCommand& command);
  bool dispatch(EngineCommand& command);
  // schedule → execute → update.
  StatusOr<std::vector<SequenceEvent>> step();
  void post(SequenceEvent event);
  void abort_all(FinishReason reason, const Status& why);
  void end_strays(FinishReason reason, const Status& why);
  void fail(const Status& why);
  void idle();
  void publish();

  const EngineCoreParts p_;
  const EngineMetrics metrics_;
  std::map<RequestId, RequestId> parent_of_;  // open sequences
  bool failed_ = false;
  int64_t preemptions_reported_ = 0;
};

}  // namespace omnibus
