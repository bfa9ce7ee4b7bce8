// AsyncEngine: the thread-safe door of the engine. Submit, cancel, stream; behind it one engine thread owns
// every mutable structure of the core, and text work (detokenising, stop strings) runs sharded on the text
// pool.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/step/memory_plan.h"
#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/control/executor/executor.h"
#include "omnibus/control/scheduler/scheduler.h"
#include "omnibus/text/template/dialect.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

struct EngineConfig {
  int32_t max_model_len = 0;             // tokens of prompt + output, > 0
  int32_t max_num_seqs = 32;             // rows per step
  int32_t max_num_batched_tokens = 512;  // token budget per step; >= max_num_seqs
  int32_t max_waiting_requests = 256;
  int64_t max_waiting_tokens = 0;  // prompt tokens open beside one KV capacity of them; 0: four capacities
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  FairSharing fair_sharing;
  bool prefix_caching = true;
  // Plan and launch the next step while the current one runs. Needs an executor of max_concurrent_batches()
  // > 1.
  bool async_scheduling = false;
  // A prefill beside decodes is cut so that the step is predicted to take no longer, in seconds; 0: no such
  // limit.
  double step_target_s = 0;
  double step_timeout_s = 0;  // a step that takes longer is a stall; 0: from the predicted cost of steps
  int32_t text_threads = 1;
  Numerics numerics = Numerics::kFast;
  std::string model_name;        // label of metrics
  bool check_integrity = false;  // after every step (tests); when idle in debug builds regardless
};

// One client request; n choices are fanned out here and come back at one sink, told apart by
// RequestOutput::index. Choice i samples with splitmix64(seed, i); with n == 1 too.
struct GenerateRequest {
  std::vector<TokenId> prompt_token_ids;
  SamplingParams sampling;  // max_tokens <= 0: until the context is full. Larger than the room: clamped
  int32_t n = 1;
  ReasoningSplit reasoning;  // fills RequestOutput::reasoning and reasoning_tokens
  std::string tenant_salt;
  std::string tenant;  // name of the key that it came with
  int32_t priority = 0;
  std::optional<MonotonicNs> deadline;
  std::string log_id;    // the client's or the door's request id, for the log
  std::string trace_id;  // 32 hex digits of a W3C traceparent; empty: none
  // Of all requests that a client wants taken together (a list of prompts): n of each, each prompt once; 0:
  // this one alone.
  int64_t group_sequences = 0;
  int64_t group_prompt_tokens = 0;
};

// Called on a text-pool thread (on the engine's when a request ends for want of memory before it has begun),
// never concurrently for one request; must not block. RequestOutput::id is what submit returned (a first call
// may come before submit has returned). The last call for each index carries finish_reason (kAbort and kError
// with a status) and there is exactly one such call per accepted choice.
using OutputSink = std::function<void(RequestOutput)>;

// kDraining: takes nothing new. kStalled: a step takes far too long. kFailed: for good.
enum class EngineTrouble { kNone, kDraining, kStalled, kFailed };

struct EngineHealth {
  EngineTrouble trouble = EngineTrouble::kNone;
  std::string reason;  // the trouble in words: "stalled", "draining", "failed: ..."
  // The engine turns: the step in flight is within its time, or none is and the inbox was answered within 1
  // s.
  bool live() const { return trouble == EngineTrouble::kNone || trouble == EngineTrouble::kDraining; }
  // And takes requests. A forward pass has succeeded since start().
  bool ready() const { return trouble == EngineTrouble::kNone; }
  bool draining = false;
  int32_t running = 0, waiting = 0;
  uint64_t steps = 0;  // steps completed
  int32_t total_blocks = 0, used_blocks = 0;
};

// What may change while the engine runs. Ranges as in EngineConfig.
struct EngineLimits {
  int32_t max_waiting_requests = 256;
  int64_t max_waiting_tokens = 0;
  FairSharing fair_sharing;
};

class AsyncEngine {
 public:
  // Starts executor and threads; returns when a real prefill and decode step of a dummy request have
  // succeeded. `metrics` and `clock` outlive it.
  static StatusOr<std::unique_ptr<AsyncEngine>> start(const EngineConfig& config,
                                                      std::unique_ptr<Executor> executor,
                                                      std::shared_ptr<const Tokenizer> tokenizer,
                                                      MetricsRegistry* metrics, const Clock* clock);
  virtual ~AsyncEngine() = default;  // aborts what is in flight, joins the threads

  // Everything below: any thread.

  // Checks the request against model and limits before admission: empty prompt, ids outside the vocabulary,
  // prompt longer than the context (400 context_length_exceeded, both counts), larger than the whole KV cache
  // (400), queue full (429 with Retry-After), draining or stalled (503 with Retry-After). On success every
  // choice will reach `sink` exactly once with an end.
  virtual StatusOr<RequestId> submit(GenerateRequest request, OutputSink sink) = 0;
  // Frees the KV of all choices after the current step; the sink gets kAbort for those still open. Unknown or
  // finished ids are ignored.
  virtual void cancel(RequestId id) = 0;

  virtual EngineHealth health() const = 0;
  virtual const EngineConfig& config() const = 0;
  virtual const MemoryPlan& memory_plan() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // Forgets every cached prefix that no request holds; those held are not found again. OK once it is done,
  // DEADLINE_EXCEEDED when the engine does not turn.
  virtual Status reset_prefix_cache() = 0;
  // Holds for requests that come from now on; INVALID_ARGUMENT names the limit.
  virtual Status set_limits(const EngineLimits& limits) = 0;
  // No new work from now on; true once nothing runs or waits, false at the deadline (then the rest is
  // aborted).
  virtual bool drain(std::chrono::milliseconds limit) = 0;
};

}  // namespace omnibus
