// keep_alive: for how long after a request its client wants the model in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// Nanoseconds; kKeepForever for any negative value.
inline constexpr int64_t kKeepForever = -1;
inline constexpr int64_t kDefaultKeepAlive = int64_t{5} * 60 * 1'000'000'000;

// A number of seconds, or a string: "5m", "1h30m", "1.5s", "-1". Too long a time is kKeepForever. nullopt:
// neither.
std::optional<int64_t> parse_keep_alive(const Json& value);

// 400 naming the field; the check of a FieldRule.
Status check_keep_alive(std::string_view name, const Json& value);

}  // namespace omnibus
