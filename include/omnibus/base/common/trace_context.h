// The trace that a request belongs to, as its client says: W3C Trace Context, level 1, header `traceparent`
// (https://www.w3.org/TR/trace-context/).
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// The trace id, 32 lower-case hex digits; "" for a header that does not follow the specification, which says
// to ignore it.
std::string trace_id_of(std::string_view traceparent);

}  // namespace omnibus
