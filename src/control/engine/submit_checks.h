// What AsyncEngine checks of a request before admission. Each refusal is a 400 that names the field.
#pragma once

#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/control/engine/async_engine.h"

namespace omnibus {

// Ids in the vocabulary, n, stop strings, and that min_tokens leaves one of allowed_token_ids. Lengths are
// Scheduler::can_serve's.
Status check_request(const GenerateRequest& request, int32_t vocab_size,
                     const std::vector<TokenId>& end_of_generation);

}  // namespace omnibus
