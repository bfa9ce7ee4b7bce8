// Where a server is and how it is spoken to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "omnibus/base/common/status.h"

namespace omnibus::client {

struct Endpoint {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  uint16_t port = 80;
  std::string prefix;  // path of the URL without a slash at its end: in front of each request's path
  // Sent with each request, after Host.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string ca_certs;   // PEM file; "": the system's certificates
  bool insecure = false;  // any certificate

  std::string host_header() const;
  std::string url() const;  // without headers
};

// "http://HOST[:PORT][/PATH]" or https. INVALID_ARGUMENT names what is wrong.
StatusOr<Endpoint> parse_base_url(std::string_view url);

}  // namespace omnibus::client
