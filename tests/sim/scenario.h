// Scenario: everything about a run that is drawn from its seed before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/control/scheduler/scheduler.h"

namespace omnibus::sim {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;

struct Tenant {
  std::string name;
  std::string salt;
};

struct WorkerPlan {
  int32_t n_drafts = 0;                        // proposed after each step
  std::vector<int32_t> tokens_per_step = {1};  // without drafts and FromStep only
  int64_t step_ns = 0;                         // least time of a step
  int64_t token_ns = 0;                        // and for each of its tokens
};

// Chances and times of what goes wrong.
struct Faults {
  double slow_step = 0;  // takes up to 20 times as long, below the watchdog's limit
  double duplicate_reply = 0;
  double nan_request = 0;
  int32_t clock_pauses = 0;  // nothing runs for seconds
  int64_t stall_at = 0;      // one step that takes far too long; 0: none
  int64_t stall_ns = 0;
  int64_t failure_at = 0;  // from this step on the executor answers with an error; 0: never
};

// Sites armed in a quarter of the runs.
struct Buggify {
  bool is_armed = false;
  double reset_prefix_cache = 0;  // per step
};

struct Load {
  int32_t requests = 0;
  int64_t mean_gap_ns = 0;
  double burst = 0;  // chance that the next request comes at once
  int32_t max_prompt = 0, max_output = 0;
  double cancels = 0;  // share of requests that are cancelled
  int64_t cancel_within_ns = 0;
  double leavers = 0;  // chance per update that its reader leaves
  int32_t storms = 0;  // everything open is cancelled at once
  double deadlines = 0;
  double stops = 0, logprobs = 0, prompt_logprobs = 0, n_above_one = 0, adapters = 0, shared_prefix = 0;
  double next_turns = 0;  // prompts that go on from an earlier answer
  int32_t priorities = 1;
  std::vector<Tenant> tenants;
  bool drains = false;  // else the run ends when all is answered, then drains
  int64_t drain_at_ns = 0, drain_limit_ns = 0;
};

struct Scenario {
  uint64_t seed = 0;
  SchedulerConfig scheduler;
  KVCacheConfig kv;
  int32_t max_waiting_requests = 0;
  int64_t max_waiting_tokens = 0;  // 0: the default
  int64_t step_timeout_ns = 0;     // of the watchdog; 0: from the predicted cost
  int64_t step_target_ns = 0;      // of a prefill beside decodes; 0: none
  bool odd_costs = false;  // it goes by a cost that has nothing to do with the steps, another each time
  WorkerPlan worker;
  Faults faults;
  Buggify buggify;
  Load load;
};

Scenario draw_scenario(uint64_t seed);
std::string describe(const Scenario& scenario);

}  // namespace omnibus::sim
