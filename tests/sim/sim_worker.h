// SimWorker: the workers of a simulated run. It runs plans in their order, keeps a mirror of the requests as
// a worker must, and a KV cache whose slots hold the hash of all that decides their content. Beside playing
// the model it judges every plan on its own account:
//   I2  a block is written by its only holder, and new to one request at a time
//   I3  what a step reads is what was written for this prefix; rows follow each other without gap
//   I6  tokens, rows and blocks stay within the limits
//   I8  a prefix hit is of full blocks whose adapter, salt, media and tokens are equal, computed by steps
//   that
//       ran before; never of a request whose prompt's logprobs are wanted, of KV that held no numbers, or of
//       what was cached before a reset
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/scheduler_output.h"

#include "sim/scenario.h"
#include "sim/verdict.h"

namespace omnibus::sim {

class SimWorker {
 public:
  // The output token whose row has no number in it, for a request.
  using NanAt = std::function<std::optional<int32_t>(RequestId)>;

  SimWorker(const Scenario& scenario, Verdict* verdict, NanAt nan_at);

  // Judges the plan and computes its output. Call in the order of the plans.
  ModelRunnerOutput run(const SchedulerOutput& plan);
  // No block that is full now may be found again.
  void reset_prefix_cache() { ++resets_; }

  struct Mirror {
    Request request;
    std::vector<TokenId> known;
    std::vector<uint64_t> prefix;  // prefix[i]: hash of known[0..i]
    size_t computed = 0;
    size_t steps = 0;                          // sampled so far in this life
    int32_t cached = 0;                        // tokens found in the prefix cache at this admission
    std::vector<std::vector<BlockId>> tables;  // per group
    StepId last_step;                          // that had a row of it, and that row
    int32_t last_row = -1;
    bool last_sampled = false;
    bool is_dead = false;  // its logits held no number; what was planned for it since is computed for nothing
  };
  // By the plans so far; those that ended since the last plan are still here.
  const std::map<RequestId, Mirror>& mirrors() const { return mirrors_; }
  size_t pool_of(size_t group) const { return pool_of_group_[group]; }
  size_t num_pools() const { return pools_.size(); }
  // Every slot holds the KV of a prefix, computed since the last reset and with numbers.
  bool is_full(size_t pool, BlockId id) const {
    const Block& b = pools_[pool][static_cast<size_t>(id)];
    return b.filled_at == resets_ && !b.poisoned;
  }

  struct Counts {
    int64_t prefix_hits = 0, cached_tokens = 0, preemptions = 0, steps = 0, tokens = 0, from_step_rows = 0;
    int64_t accepted_drafts = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Block {
    std::vector<uint64_t> slots;
    int32_t holders = 0;      // mirrors whose table has it
    bool poisoned = false;    // a row without numbers wrote it
    int32_t filled_at = -1;   // resets before its last slot was written
    uint64_t written_in = 0;  // step that wrote its last slot
  };
  Block& block(size_t group, BlockId id);
  void fail(const char* invariant, RequestId id, const std::string& what);
  void drop(RequestId id, const char* why);
  void take_new(const NewRequestData& data);
  void take_row(const SchedulerOutput& plan, size_t index, bool is_new);
  void take_blocks(const ScheduledRow& row, Mirror& mirror, bool is_new);
  void judge_hit(const SchedulerOutput& plan, const ScheduledRow& row, Mirror& mirror);
  void judge_source(const ScheduledRow& row, const Mirror& mirror);
  void judge_limits(const SchedulerOutput& plan);
  void poison(const ScheduledRow& row, Mirror& mirror);
  void write_and_read(const SchedulerOutput& plan, const ScheduledRow& row, Mirror& mirror, bool is_nan);
  RowOutput run_row(const SchedulerOutput& plan, size_t index);
  void sample(Mirror& mirror, const ScheduledRow& row, RowOutput& out);
  void mark_full(const Mirror& mirror, size_t from);
  void push(Mirror& mirror, TokenId token);
  bool has_no_number_next(const Mirror& mirror) const;
  TokenId next_of(const Mirror& mirror) const;

  const Scenario& scenario_;
  Verdict* const verdict_;
  const NanAt nan_at_;
  std::vector<size_t> pool_of_group_;
  std::vector<std::vector<Block>> pools_;
  std::map<RequestId, Mirror> mirrors_;
  int32_t resets_ = 0;
  Counts counts_;
};

}  // namespace omnibus::sim
