// What every door resolves alike once a body is read.
#pragma once

#include <cstdint>
#include <string_view>

#include "omnibus/base/common/status.h"

#include "api_context.h"

namespace omnibus {

// How many alternatives a position comes with: as asked, as long as this server gives as many
// (--max-logprobs), and never more than the vocabulary has; -1 asks for all. 400 names `param`.
Status resolve_logprob_count(const ApiContext& context, std::string_view param, int32_t& count);

}  // namespace omnibus
