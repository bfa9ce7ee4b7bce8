// JSON bodies from strangers: parsed within limits, as Boost.JSON parses them, and written back as text that
// both read alike. Input: the body.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/src.hpp>

#include "fuzz/reference_json.h"

namespace {

using omnibus::Json;

int depth_of(const Json& value) {
  int deepest = 0;
  if (value.is_structured()) {
    for (const Json& item : value) deepest = std::max(deepest, depth_of(item));
    ++deepest;
  }
  return deepest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = omnibus::parse_json(text);
  const auto reference = omnibus::fuzz::reference_parse(text);
  if (!parsed.ok()) {
    if (omnibus::error_detail(parsed.status()).http != 400 || parsed.status().message().size() > 200)
      __builtin_trap();
    // Few bytes hold few keys: the limits on them do not come in.
    if (reference && size < omnibus::kMaxJsonKeys && omnibus::fuzz::within_our_limits(*reference))
      __builtin_trap();
    return 0;
  }
  if (!reference || !omnibus::fuzz::same(*parsed, *reference)) __builtin_trap();
  if (depth_of(*parsed) > omnibus::kMaxJsonDepth) __builtin_trap();

  const std::string written = omnibus::dump_json(*parsed);
  const auto again = omnibus::parse_json(written);
  if (!again.ok() || *again != *parsed || omnibus::dump_json(*again) != written) __builtin_trap();
  const auto read = omnibus::fuzz::reference_parse(written);
  if (!read || !omnibus::fuzz::same(*parsed, *read)) __builtin_trap();
  if (omnibus::quote_value(*parsed).size() > 203) __builtin_trap();
  return 0;
}
