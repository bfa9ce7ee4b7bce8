// The answer to what would be served at another moment.
#pragma once

#include <string_view>

#include "omnibus/base/common/status.h"

namespace omnibus {

// Nobody's mistake, and over soon: 503 with a Retry-After of 1 s.
Status unavailable_for_now(std::string_view message);

}  // namespace omnibus
