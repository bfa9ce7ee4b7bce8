// SchedulerOutput: the plan of one step, as a diff. New requests come whole; known ones as block-id deltas
// and token counts. Workers keep a mirror of request state. There is no prefill and no decode: a
// row computes n_tokens tokens of one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/contract/request/request.h"

namespace omnibus {

enum class Numerics : uint8_t { kFast, kFine, kF32 };

using Epoch = uint64_t;

// Identifies a step; (epoch, seq) never repeats.
struct StepId {
  Epoch epoch = 0;
  uint64_t seq = 0;
  bool operator==(const StepId&) const = default;
};

// A request the worker has not seen, or one re-admitted after preemption (then `output_token_ids` is not
// empty).
struct NewRequestData {
  Request request;
  std::vector<TokenId> output_token_ids;  // tokens sampled before a preemption; recomputed with the prompt
};

// Input ids come from the request's known tokens (prompt + output).
struct KnownTokens {};
// Asynchronous stepping: the first input id is row `row` of the not yet finished step `seq`.
struct FromStep {
  uint64_t seq = 0;
  int32_t row = 0;
};

struct ScheduledRow {
  RequestId id = 0;
  std::vector<std::vector<BlockId>> new_blocks;  // per KV group: ids appended to the table in this step
  int32_t base_computed = 0;                     // tokens whose KV is valid before this step
  int32_t n_tokens = 0;                          // tokens computed in this step, drafts included
  std::variant<KnownTokens, FromStep> source;
  std::vector<TokenId> drafts;  // speculative ids after the known ones
  int32_t adapter_slot = -1;
  bool samples = false;  // base_computed + n_tokens reaches the end of the known tokens
};

// What a KV connector is told; empty until KV transfer exists.
struct ConnectorMeta {
  std::string bytes;
};

struct SchedulerOutput {
  StepId id;
  Numerics numerics = Numerics::kFast;
  std::vector<NewRequestData> new_requests;  // each also has a row
  std::vector<ScheduledRow> rows;
  std::vector<RequestId> finished;   // drop the mirror; their blocks may be reused in this very step
  std::vector<RequestId> preempted;  // drop the mirror; they come back as new
  ConnectorMeta connector_meta;

  int32_t total_tokens() const {
    int32_t n = 0;
    for (const auto& row : rows) n += row.n_tokens;
    return n;
  }
};

}  // namespace omnibus
