// ModelRunnerOutput: what a step produced, row by row, in the order of SchedulerOutput::rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/step/scheduler_output.h"

namespace omnibus {

// Otherwise than kOk the request fails alone, its neighbours go on, and the row holds nothing.
// kNumericError: NaN or Inf in this row's logits. kNoCandidate: the request's own allow list and bans leave
// no token to draw.
enum class RowStatus : uint8_t { kOk, kNumericError, kNoCandidate };

// Ids and logprobs only; bytes of tokens are filled in by OutputProcessor.
struct SampledLogprobs {
  TokenLogprob sampled;
  std::vector<TokenLogprob> top;  // descending, ties to the lower id
  int32_t rank = 0;               // of `sampled` in the raw row, 1 = likeliest; 0: not asked for
};

struct RowOutput {
  RequestId id = 0;
  std::vector<TokenId> tokens;  // 0 (prompt not finished) .. k+1 (accepted drafts + one)
  std::vector<TokenId> next_drafts;
  std::vector<SampledLogprobs> logprobs;  // one per token when asked for
  std::vector<SampledLogprobs>
      prompt_logprobs;  // of positions base_computed+1 .. computed in this step, when asked for
  std::vector<float> pooled;
  RowStatus status = RowStatus::kOk;
};

struct ModelRunnerOutput {
  StepId id;
  std::vector<RowOutput> rows;
  ConnectorMeta connector_meta;
  // How long the step had the worker. The executor measures it where the step runs: whoever takes the result
  // in late would take the step behind it for a short one. 0: not measured.
  int64_t duration_ns = 0;
};

}  // namespace omnibus
