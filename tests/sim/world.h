// World: one simulated run. The real scheduler, KV cache, engine core, admission, output processor and stall
// detector, with a fake executor and clients around them, all on virtual time in one thread. The engine's
// thread is played by run_until_wait(): while it waits for a step it hears of nothing else.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/metrics.h"
#include "omnibus/text/tokenizer/tokenizer.h"

#include "sim/block_checks.h"
#include "sim/clients.h"
#include "sim/event_heap.h"
#include "sim/plan_checks.h"
#include "sim/scenario.h"
#include "sim/sim_executor.h"
#include "sim/sim_rng.h"
#include "sim/sim_worker.h"
#include "sim/verdict.h"
#include "src/control/engine/engine_core.h"
#include "src/control/engine/engine_loop.h"
#include "src/control/engine/engine_monitor.h"
#include "src/control/engine/request_admission.h"
#include "src/control/engine/request_ledger.h"

namespace omnibus::sim {

struct RunResult {
  std::optional<Violation> violation;
  uint64_t trace_hash = 0;
  int64_t events = 0;
  int64_t simulated_ns = 0;
  SimWorker::Counts counts;
  int64_t accepted = 0, refused = 0;
  std::map<std::string, int64_t> happened;  // how often which ends and faults came about
  std::vector<std::string> trace_tail;
};

class World {
 public:
  World(const Scenario& scenario, bool echo);
  RunResult run();

 private:
  bool start();
  void post_arrivals();
  void post_faults();
  // The engine's thread.
  void wake();
  void turn();
  void see_commands();
  void see(SubmitCommand& submit);
  void see(const CancelCommand& cancel);
  void on_plan(const SchedulerOutput& plan);
  void on_reply();
  void answer_twice();
  StepCost next_odd_cost();
  // Clients.
  void ask();
  void cancel(RequestId parent);
  void leave(RequestId parent);
  void cancel_everything();
  void begin_drain();
  void end_drain();
  // Supervision.
  void tick();
  void judge_stall(bool is_stalled);
  void check_after_event();
  void note_late();
  void judge_due_ends();
  void check_at_end();
  void send(EngineCommand command);
  void happened(const std::string& what) { ++happened_[what]; }
  void hand_over(const RequestOutput& output);

  const Scenario scenario_;
  ManualClock clock_;
  Trace trace_;
  Verdict verdict_;
  EventHeap heap_;
  SimRng client_rng_;
  SimRng fault_rng_;
  SimRng cost_rng_;
  MetricsRegistry registry_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Clients clients_;
  SimWorker worker_;
  SimExecutor executor_;
  std::unique_ptr<Scheduler> scheduler_;
  std::optional<EngineState> state_;
  std::optional<RequestLedger> ledger_;
  std::optional<RequestAdmission> admission_;
  EngineInbox inbox_;
  std::optional<OutputProcessor> outputs_;
  std::optional<EngineCore> core_;
  std::optional<StallDetector> detector_;
  std::optional<BlockChecks> blocks_;
  PlanChecks plans_;
  std::vector<RequestId> due_ends_;  // cancelled or late, and the engine knows: ended when it next delivers
  std::deque<SimExecutor::Step> answered_;  // the last few
  int64_t asked_ = 0;
  bool engine_stopped_ = false;
  MonotonicNs paused_at_ = 0;  // the last time that the clock jumped
  MonotonicNs drain_ends_at_ = 0;
  int64_t events_ = 0;
  std::map<std::string, int64_t> happened_;
};

RunResult run_seed(uint64_t seed, bool echo = false);

}  // namespace omnibus::sim
