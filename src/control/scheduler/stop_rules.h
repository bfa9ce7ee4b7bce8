// When a request ends by what the core can see: token ids and counts.
#pragma once

#include <cstdint>
#include <optional>

#include "omnibus/contract/request/request.h"
#include "omnibus/contract/request/request_output.h"

namespace omnibus {

struct CoreStop {
  FinishReason reason = FinishReason::kStop;
  StopCause cause;
};

// Judges output token number `n_output` (1 = first), which is `token`. EOS and stop ids count only after
// min_tokens other tokens; they come before the length limits, so that a stop on the last allowed token is a
// stop.
std::optional<CoreStop> judge_token(const Request& request, TokenId token, int32_t n_output,
                                    int32_t max_model_len);

}  // namespace omnibus
