#include "omnibus/client/endpoint.h"

#include <charconv>

#include <fmt/format.h>

namespace omnibus::client {
namespace {

Status bad_url(std::string_view url, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("'{}' is not the URL of a server: {}", url, why));
}

}  // namespace

std::string Endpoint::host_header() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::string Endpoint::url() const { return (tls ? "https://" : "http://") + host_header() + prefix; }

StatusOr<Endpoint> parse_base_url(std::string_view url) {
  Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    endpoint.tls = true;
  } else {
    return bad_url(url, "it begins with neither http:// nor https://");
  }
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '?' || c == '#' || c == '@') {
      return bad_url(url, "it has a character that has no place there");
    }
  }
  const size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) endpoint.prefix = rest.substr(slash);
  while (endpoint.prefix.ends_with('/')) endpoint.prefix.pop_back();

  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad_url(url, "a bracket is not closed");
    endpoint.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) return bad_url(url, "the port is not a number");
  } else {
    const size_t colon = authority.find(':');
    endpoint.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (endpoint.host.empty()) return bad_url(url, "it names no host");
  endpoint.port = endpoint.tls ? 443 : 80;
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (error != std::errc() || end != port.data() + port.size() || endpoint.port == 0) {
      return bad_url(url, "the port is not a number up to 65535");
    }
  }
  return endpoint;
}

}  // namespace omnibus::client
