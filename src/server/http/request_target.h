// The request target and Host of HTTP/1.1 (RFC 9112 §3.2), taken apart once: routing, scopes and handlers see
// the decoded path only.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"

namespace omnibus {

struct RequestTarget {
  std::string path;  // decoded; "*" for OPTIONS *
  std::string query;
  std::string authority;  // of the absolute form; empty otherwise
};

// Origin form, absolute form (http and https) and "*"; anything else is 400, as are a bad escape, %00 and a
// raw byte outside printable ASCII.
StatusOr<RequestTarget> parse_target(std::string_view target);

// A host name, IPv4 or [IPv6] with an optional port.
bool is_valid_host(std::string_view host);

}  // namespace omnibus
