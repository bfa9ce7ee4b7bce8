// How long a client waits for its answer: what X-Deadline means, and the bound that other doors share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// Nobody waits longer.
constexpr std::chrono::seconds kLongestWait = std::chrono::hours(7 * 24);

// The moment that the request's X-Deadline means, on the clock of `now`: seconds from now in decimal, "30" or
// "2.5", above 0 and at most a week. Nothing without the header; 400 naming it for anything else in it.
StatusOr<std::optional<int64_t>> header_deadline(const HttpRequest& request, MonotonicNs now);

}  // namespace omnibus
