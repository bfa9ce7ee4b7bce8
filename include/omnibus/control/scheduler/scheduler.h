// Scheduler: decides which request computes how many tokens in the next step, and what a step's output means
// for each request. A state machine: results depend on the calls and the injected clock alone; no I/O.
//
// In each step, under one token budget: (1) running requests past their prefill, in the policy's order, so
// that no prefill starves a decode; (2) running prefills, in chunks, and waiting requests while rows, budget
// and blocks last, each when it is its turn. A request gets blocks for all its known tokens when it is
// admitted, those of a cached prefix among them, so a prefill never waits half done for memory. When a decode
// finds no block, the last running request in the policy's order is preempted: its blocks are freed, it keeps
// its place in that order and is recomputed later. The first in the order therefore always advances. No
// choice depends on the order of an unordered container or on pointers. More: docs/scheduling.md.
//
// Several steps may be in flight: planned, and not yet updated. Workers run them in the order of their plans,
// so what a plan frees may be used by the next one, and a row may take its input from a row of the step
// before (FromStep). A row of a request that has ended since is computed for nothing and ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/contract/request/request.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/contract/step/step_cost.h"
#include "omnibus/control/kv_cache/kv_cache_manager.h"

namespace omnibus {

enum class SchedulingPolicy {
  kFcfs,      // first come, first served
  kPriority,  // lowest Request::priority first, then first come; the preempted are the last of that order
};

// Weighted fair sharing between tenants (Request::tenant): each is served tokens, of prompts and answers
// alike, in proportion to its weight while it has work.
struct FairSharing {
  bool enabled = false;
  std::map<std::string, double> weights;  // > 0 and finite; a tenant that is not listed has 1
};
// INVALID_ARGUMENT names the tenant.
Status check_fair_sharing(const FairSharing& sharing);

struct SchedulerConfig {
  int32_t max_model_len = 0;           // tokens of prompt + output, > 0
  int32_t max_num_seqs = 32;           // running requests, > 0
  int32_t max_num_batched_tokens = 0;  // per step; >= max_num_seqs + chunk alignment - 1
  Numerics numerics = Numerics::kFast;
  Epoch epoch = 0;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  FairSharing fair_sharing;
  // A waiting request that others have overtaken in so many steps is next, whatever policy and shares say.
  int32_t max_passed_over = 16;
  bool prefix_caching = true;
  std::string model;  // name of the weights, in every prefix key
  // How many steps may be planned and not yet updated: pipeline stages + asynchronous steps.
  int32_t max_steps_in_flight = 1;
  // Asynchronous stepping: a sequence whose next token is being sampled by a step in flight may be planned
  // again, with FromStep as source. Without, it waits for that step (a pipeline alternates its batches).
  bool from_step = false;
};

class FairShares;
class StepBudget;

// What one step (or an abort) means for one request.
struct SequenceEvent {
  RequestId id = 0;
  int32_t first_index = 0;                       // index of tokens[0] in the request's output
  std::vector<TokenId> tokens;                   // accepted; nothing follows a token that ends the request
  std::vector<SampledLogprobs> logprobs;         // one per token when asked for
  std::vector<SampledLogprobs> prompt_logprobs;  // with the first token: of prompt positions 1 .. end
  std::optional<FinishReason> finish_reason;     // the request has left the scheduler
  StopCause stop_cause;                          // kStop by a stop id; monostate for EOS
  Status status;                                 // kAbort, kError: why
  RequestTimeline timeline;                      // so far; complete with finish_reason
  MonotonicNs time_ns = 0;
};

// Not thread-safe; the engine thread owns it.
class Scheduler {
 public:
  // INVALID_ARGUMENT names the setting that is out of range.
  static StatusOr<std::unique_ptr<Scheduler>> create(const SchedulerConfig& config, const KVCacheConfig& kv,
                                                     const Clock* clock);
  ~Scheduler();

  // Keys for Request::prefix_keys; none where the prefix cache is off. Thread-safe: reads what creation
  // froze.
  std::vector<Digest256> make_prefix_keys(const Request& request) const;
  // A sampling request with a new id whose prompt leaves room for at least one token (can_serve).
  void add(Request request);
  // INVALID_ARGUMENT with both numbers when prompt or prompt + 1 token exceed context or the KV cache.
  // Thread-safe: reads what creation froze.
  Status can_serve(int64_t prompt_tokens) const;
  // How many tokens a prompt of this length may be followed by. Thread-safe.
  int32_t max_output_tokens(int64_t prompt_tokens) const;

  // Ends the request now, wherever it is: waiting, running or in a step in flight (whose row is then
  // ignored). nullopt for an unknown or finished id.
  std::optional<SequenceEvent> abort(RequestId id, FinishReason reason, Status why);
  // The text layer found a stop string in output token n_tokens - 1. Surplus tokens computed since are
  // dropped; their number is returned (0 for an unknown or finished id).
  int32_t finish(RequestId id, int32_t n_tokens);
  // Forgets every cached prefix; blocks that requests hold stay theirs and are not found again.
  void reset_prefix_cache() { kv_->reset_prefix_cache(); }
  // Shares for requests that come from now on; weights hold at once. Weights as create() wants them.
  void set_fair_sharing(FairSharing sharing);
  // Ends every request whose deadline has passed (DEADLINE_EXCEEDED).
  std::vector<SequenceEvent> expire();

  // From now on a prefill beside decodes is cut so that the step is predicted to take `target_ns` at most
  // (StepBudget): tokens of answers do not wait long for the prompts of others. 0: no such limit.
  void set_step_target(const StepCost& cost, int64_t target_ns) {
    step_cost_ = cost;
    step_target_ns_ = target_ns;
  }
  // The next step, to be executed after all earlier ones. Without rows (nothing can run, or everything that
  // can is in flight) it is none and must not be executed.
  SchedulerOutput schedule();
  // `output` belongs to `plan`, the oldest step in flight. INTERNAL when they do not fit together, or the
  // step is another or was taken in before: then nothing has changed. Requests that were aborted, or
  // preempted and re-admitted, since the plan was made are not touched.
  StatusOr<std::vector<SequenceEvent>> update_from_output(const SchedulerOutput& plan,
                                                          const ModelRunnerOutput& output);

  bool has_work() const { return !sequences_.empty(); }
  int32_t steps_in_flight() const { return static_cast<int32_t>(in_flight_.size()); }
  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return static_cast<int32_t>(sequences_.size() - running_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }
  // Prompt tokens that were looked up in the prefix cache and found there, each request once, at its first
  // admission.
  int64_t prefix_cache_queries() const { return prefix_cache_queries_; }
  int64_t prefix_cache_hits() const { return prefix_cache_hits_; }
  const KVCacheManager& kv() const { return *kv_; }
  std::vector<RequestId> ids() const;  // of all unfinished requests, ascending
  // Block ledger, queues and states agree. INTERNAL says what does not.
  Status check_integrity() const;

 private:
  struct Sequence;
  class WaitingQueue;

  Scheduler(const SchedulerConfig& config, const KVCacheConfig& kv, std::unique_ptr<KVCacheManager> manager,
            const Clock* clock);
  // schedule_step.cc
  void schedule_decodes(SchedulerOutput& plan, StepBudget& budget);
  bool may_decode(const Sequence& sequence) const;
  size_t decode_rows_per_step() const;
  void cut_drafts(Sequence& sequence, int64_t budget) const;
  void schedule_prompts(SchedulerOutput& plan, StepBudget& budget);
  std::vector<Sequence*> prefills_in_turn() const;
  // Tokens that may be computed now: within the budget, cut at the alignment.
  int32_t clip_chunk(const Sequence& sequence, int32_t budget) const;
  int32_t prefill_chunk(const Sequence& sequence, const StepBudget& budget) const;
  void add_row(SchedulerOutput& plan, Sequence& sequence, int32_t n_tokens, GroupBlocks new_blocks);
  // admission.cc
  bool admit_next(SchedulerOutput& plan, StepBudget& budget, std::vector<Sequence*>& admitted);
  void count_left_out(std::span<Sequence* const> prefills, std::span<Sequence* const> left_out,
                      std::span<Sequence* const> admitted);
  bool admit(Sequence& sequence, SchedulerOutput& plan, StepBudget& budget);
  void count_prefix_hit(Sequence& sequence, int32_t n_tokens);
  // prefix_keys.cc
  ComputedBlocks find_prefix(Sequence& sequence) const;
  void extend_keys(Sequence& sequence, int32_t n_tokens) const;
  // preemption.cc
  std::optional<GroupBlocks> grow(Sequence& sequence, SchedulerOutput& plan);
  void preempt_last(const Sequence& needy, SchedulerOutput& plan);
  // update_step.cc
  Status check_output(const SchedulerOutput& plan, const ModelRunnerOutput& output) const;
  Sequence* find(RequestId id, size_t& near) const;
  void take_row(Sequence& sequence, const ScheduledRow& row, const RowOutput& output, MonotonicNs now,
                std::vector<SequenceEvent>& events);
  void fail_row(Sequence& sequence, RowStatus status, std::vector<SequenceEvent>& events);
  void take_tokens(Sequence& sequence, const RowOutput& output, SequenceEvent& event);
  void take_prompt_logprobs(Sequence& sequence, const ScheduledRow& row, const RowOutput& output);
  void publish(Sequence& sequence);

  void start_event(const Sequence& sequence, MonotonicNs now, SequenceEvent& event) const;
  void end(Sequence& sequence, SequenceEvent& event);  // destroys `sequence`
  void remove(Sequence& sequence);
  Status check_running(const Sequence& sequence) const;
  Status check_waiting(const Sequence& sequence) const;

  const SchedulerConfig config_;
  int32_t chunk_alignment_ = 1;
  const std::unique_ptr<KVCacheManager> kv_;
  const Clock* const clock_;
  const std::unique_ptr<FairShares> shares_;
  const std::unique_ptr<WaitingQueue> waiting_;
  std::map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // in the policy's order
  std::set<std::pair<MonotonicNs, RequestId>> deadlines_;
  std::vector<RequestId> finished_;  // the workers have not heard of these ends yet
  std::deque<uint64_t> in_flight_;   // steps planned and not updated, oldest first
  uint64_t next_seq_ = 1;
  uint64_t next_arrival_ = 1;
  StepCost step_cost_;
  int64_t step_target_ns_ = 0;
  int64_t num_preemptions_ = 0;
  int64_t prefix_cache_queries_ = 0;
  int64_t prefix_cache_hits_ = 0;
};

}  // namespace omnibus
