// JSON in and out at the doors: nlohmann::ordered_json behind a guard on depth and keys, without exceptions.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "omnibus/base/common/status.h"

namespace omnibus {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonKeys = 8192;  // per object: ordered_json inserts in linear time

// One JSON value and nothing after it. 400 for anything else: bad UTF-8, a BOM, NaN, numbers beyond double
// (param names the field), nesting or objects beyond the limits. Duplicate keys: the last wins.
StatusOr<Json> parse_json(std::string_view text);

// Compact text; invalid UTF-8 comes out as U+FFFD, so it never throws.
std::string dump_json(const Json& value);

// At most `limit` bytes of `text`, cut at a character, for quoting a client's value in an error.
std::string quote_value(const Json& value, size_t limit = 200);

}  // namespace omnibus
