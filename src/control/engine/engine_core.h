// EngineCore: schedule → execute → update, as a state machine that its caller drives, in production the
// engine's thread (engine_loop.h). It owns scheduler and KV bookkeeping, and up to `max_steps_in_flight`
// steps that were launched and not taken in. Its results depend on the calls, the injected clock and the
// executor's answers alone; complete() waits for the executor, nothing else waits.
#pragma once

#include <deque>
#include <future>
#include <map>
#include <vector>

#include "omnibus/base/common/unavailable.h"
#include "omnibus/control/executor/executor.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "engine_command.h"
#include "engine_metrics.h"
#include "engine_state.h"
#include "output_processor.h"
#include "request_ledger.h"
#include "step_cost_fit.h"

namespace omnibus {

// What the core works with; all outlive it.
struct EngineCoreParts {
  Scheduler* scheduler = nullptr;
  Executor* executor = nullptr;
  OutputProcessor* outputs = nullptr;
  RequestLedger* ledger = nullptr;
  EngineState* state = nullptr;
  const Clock* clock = nullptr;
  int32_t vocab_size = 0;
  int32_t max_steps_in_flight = 1;  // as the scheduler was told
  int64_t step_target_ns = 0;       // of a prefill beside decodes; 0: no limit
  int64_t step_timeout_ns = 0;      // 0: from the predicted cost
  bool check_integrity = false;     // after every step
};

// One thread. After a failure every open and every later request is answered with an error, and no step runs.
class EngineCore {
 public:
  EngineCore(const EngineCoreParts& parts, EngineMetrics metrics) : p_(parts), metrics_(std::move(metrics)) {}

  // Real steps on a dummy request, a prefill and a decode, before the first client's.
  Status warm_up();

  // False for a StopCommand: everything has ended, nothing may follow.
  bool handle(EngineCommand& command);
  // Ends the requests whose deadline has passed.
  void expire();
  // Plans and executes steps while fewer than may be are in flight and there is something to plan; true if it
  // launched one. An inline executor runs the step in here.
  bool launch();
  bool step_in_flight() const { return !in_flight_.empty(); }
  // Takes in the oldest step in flight, for which it waits.
  void complete();
  // Shows the counts, then hands what was posted since to the output processor.
  void flush();
  // Ends everything with an error, for good. What it throws itself, for want of memory, leaves requests open:
  // the next call of it or of handle() ends them.
  void fail(const Status& why);

  bool has_work() const { return !failed_ && p_.scheduler->has_work(); }
  bool failed() const { return failed_; }
  const StepCost& step_cost() const { return cost_.cost(); }
  // With nothing in flight: what must hold at rest.
  Status check_integrity() const { return p_.scheduler->check_integrity(); }

 private:
  struct StepInFlight {
    SchedulerOutput plan;  // without what only the worker needs
    std::future<StatusOr<ModelRunnerOutput>> result;
    int64_t host_ns = 0;  // planning it took
    StepLoad load;
    int64_t allowed_ns = 0;
  };

  // Each is false for: stop.
  bool take(SubmitCommand& command);
  bool take(const CancelCommand& command);
  bool take(const FinishCommand& command);
  bool take(const AbortAllCommand& command);
  bool take(const ResetPrefixCacheCommand& command);
  bool take(SetFairSharingCommand& command);
  bool take(const PingCommand& command);
  bool take(const FailCommand& command);
  bool take(const StopCommand& command);

  void open(SubmitCommand& command);
  void give_up(const ParentRequest& request);
  // False: nothing to plan now.
  StatusOr<bool> launch_one();
  StatusOr<std::vector<SequenceEvent>> take_oldest();
  void watch_oldest(MonotonicNs since);
  EngineCounts counts() const;
  void publish();
  void post(SequenceEvent&& event);
  void abort_all(FinishReason reason, const Status& why);
  void end_leftovers();
  void end_strays(FinishReason reason, const Status& why);

  const EngineCoreParts p_;
  const EngineMetrics metrics_;
  std::deque<StepInFlight> in_flight_;  // oldest first
  struct OpenSequence {
    RequestId parent = 0;
    MonotonicNs arrival_ns = 0;
  };
  std::map<RequestId, OpenSequence> open_;  // sequences, by id
  std::vector<ScheduledRow> spare_rows_;    // memory of the last plan
  StepCostFit cost_;
  bool warm_ = false;
  bool failed_ = false;
  EngineCounts shown_;  // by the metrics
  const Status no_memory_ = unavailable_for_now("The server is out of memory for this request");
};

}  // namespace omnibus
