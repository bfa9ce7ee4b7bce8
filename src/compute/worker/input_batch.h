// InputBatch: the worker's mirror of request state. Plans are diffs; what they leave out lives here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/contract/request/request.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/contract/step/scheduler_output.h"

namespace omnibus {

// One sequence. A slot that is reused starts from a value-initialised state: nothing of an earlier request is
// left.
struct RequestState {
  RequestId id = 0;
  SamplingParams sampling;
  HeadRequest head;             // what head() must do for a sampled row, but for the spans
  std::vector<TokenId> tokens;  // prompt, then output
  int32_t prompt_length = 0;
  int32_t computed = 0;                      // tokens whose KV is valid
  FromStep last_sampled;                     // row that gave the last token; seq 0: none has
  RowStatus failure = RowStatus::kOk;        // of an earlier row: nothing more is computed for it
  std::vector<std::vector<BlockId>> tables;  // block ids by KV group
  std::vector<uint32_t> allowed_mask;        // of allowed_token_ids; empty: all
  std::vector<int32_t> stop_ids;             // EOS and stop ids, banned before min_tokens
  bool penalized = false;                    // a penalty over all tokens is on, so `counts` is kept
  std::vector<TokenCount> counts;
  std::unordered_map<TokenId, size_t> count_index;

  int32_t known() const { return static_cast<int32_t>(tokens.size()); }
  bool failed() const { return failure != RowStatus::kOk; }
  int32_t output_length() const { return known() - prompt_length; }
  // Appends a sampled token.
  void append(TokenId token);
  void count(TokenId token, bool in_output);
};

struct MirrorLimits {
  int32_t vocab_size = 0;
  int32_t max_model_len = 0;
  int32_t max_rows = 0;  // tokens of a step
  int32_t num_blocks = 0;
  int32_t groups = 1;
};

// One thread.
class InputBatch {
 public:
  explicit InputBatch(const MirrorLimits& limits) : limits_(limits) {}

  // Checks the whole plan, then takes it in: drops finished and preempted requests, adds new ones, appends
  // blocks. INVALID_ARGUMENT names the request and changes nothing. States of plan.rows, in order, in `rows`.
  Status apply(const SchedulerOutput& plan, std::vector<RequestState*>& rows);
  size_t size() const { return slot_of_.size(); }

 private:
  Status check(const SchedulerOutput& plan) const;
  Status check_new(const NewRequestData& data) const;
  Status check_row(const ScheduledRow& row, int32_t known, int32_t computed, const RequestState* state) const;
  static Status check_source(const ScheduledRow& row, const RequestState* state);
  void drop(RequestId id);
  void add(const NewRequestData& data);

  const MirrorLimits limits_;
  std::vector<RequestState> slots_;
  std::vector<size_t> free_slots_;
  std::unordered_map<RequestId, size_t> slot_of_;
};

}  // namespace omnibus
