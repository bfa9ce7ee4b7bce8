#include "omnibus/base/common/trace_context.h"

#include <algorithm>
#include <cstddef>

namespace omnibus {
namespace {

// version "-" trace-id "-" parent-id "-" trace-flags
constexpr size_t kTraceAt = 3, kTraceDigits = 32, kParentAt = 36, kParentDigits = 16, kFlagsAt = 53,
                 kLength = 55;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::string trace_id_of(std::string_view traceparent) {
  if (traceparent.size() < kLength) return {};
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace = traceparent.substr(kTraceAt, kTraceDigits);
  const std::string_view parent = traceparent.substr(kParentAt, kParentDigits);
  const std::string_view flags = traceparent.substr(kFlagsAt, 2);
  for (const size_t dash : {kTraceAt - 1, kParentAt - 1, kFlagsAt - 1}) {
    if (traceparent[dash] != '-') return {};
  }
  if (!is_hex(version) || !is_hex(trace) || !is_hex(parent) || !is_hex(flags)) return {};
  if (version == "ff" || is_zero(trace) || is_zero(parent)) return {};
  // A later version may say more behind another dash; this one ends here.
  const bool ends = traceparent.size() == kLength;
  if (!ends && (version == "00" || traceparent[kLength] != '-')) return {};
  return std::string(trace);
}

}  // namespace omnibus
