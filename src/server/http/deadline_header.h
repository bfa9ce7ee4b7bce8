// X-Deadline: how long a client waits for its answer.
#pragma once

#include <cstdint>
#include <optional>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// The moment that the request's X-Deadline means, on the clock of `now`: seconds from now in decimal, "30" or
// "2.5", above 0 and at most a week. Nothing without the header; 400 naming it for anything else in it.
StatusOr<std::optional<int64_t>> deadline_of(const HttpRequest& request, MonotonicNs now);

}  // namespace omnibus
