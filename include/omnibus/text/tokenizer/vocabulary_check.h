// The one check that ids which came from outside are tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// 400 naming `param` and the first id that is not in [0, vocab_size).
Status check_in_vocabulary(std::string_view param, std::span<const TokenId> ids, int32_t vocab_size);
// The same for one number, before it is narrowed.
Status check_in_vocabulary(std::string_view param, int64_t id, int32_t vocab_size);

}  // namespace omnibus
