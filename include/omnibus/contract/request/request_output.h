// RequestOutput: what the engine hands to a door for one sequence, one value per update. Text is whole UTF-8
// characters; joined deltas are the full text, whatever the number of updates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request.h"

namespace omnibus {

struct TokenLogprob {
  TokenId id = kNoToken;
  float logprob = 0.0F;  // log-softmax of the raw logits; never NaN or infinite (clamped to -9999)
};

// Logprobs of one position. `top` is sorted descending, ties to the lower id. The rank is known for positions
// of a prompt.
struct PositionLogprobs {
  TokenLogprob sampled;
  std::vector<TokenLogprob> top;
  int32_t rank = 0;                    // of `sampled` in its row, 1 = likeliest; 0: not known
  std::string token_bytes;             // raw bytes of the sampled token
  std::vector<std::string> top_bytes;  // raw bytes of each of `top`
};

struct RequestUsage {
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
  int32_t cached_tokens = 0;     // of the prompt, served from the prefix cache
  int32_t reasoning_tokens = 0;  // of the completion, spent on reasoning
};

// Phases of one request on the engine's clock; they sum to end-to-end exactly.
struct RequestTimeline {
  int64_t arrival_ns = 0, first_scheduled_ns = 0, first_token_ns = 0, finished_ns = 0;
  int32_t preemptions = 0;
  int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache at first admission

  int64_t queue_ns() const { return first_scheduled_ns - arrival_ns; }
  int64_t prefill_ns() const { return first_token_ns - first_scheduled_ns; }
  int64_t decode_ns() const { return finished_ns - first_token_ns; }
  int64_t e2e_ns() const { return finished_ns - arrival_ns; }
};

// stop string that matched, or stop token id; monostate for EOS and length.
using StopCause = std::variant<std::monostate, std::string, TokenId>;

struct RequestOutput {
  RequestId id = 0;
  int32_t index = 0;                              // choice index within the parent
  std::string text;                               // new text of the answer since the last update
  std::string reasoning;                          // likewise, of what the model thought before it
  std::vector<TokenId> token_ids;                 // tokens that this update accounts for
  std::vector<PositionLogprobs> logprobs;         // one per token whose text was delivered, when asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // once, with the first update; entry 0 is empty (id -1)
  std::optional<FinishReason> finish_reason;      // set on the last update and only there
  StopCause stop_cause;
  RequestUsage usage;        // totals so far
  RequestTimeline timeline;  // complete with the last update
  Status status;             // non-OK with kAbort or kError: what the client is told
};

}  // namespace omnibus
