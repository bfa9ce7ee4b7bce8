#include "omnibus/base/config/admin_place.h"

#include <string_view>

#include <fmt/format.h>

namespace omnibus {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Status wrong(const std::string& text) {
  return absl::InvalidArgumentError(
      fmt::format("--admin-listen: '{}' is none of auto, off, unix:PATH and HOST:PORT ([IPv6]:PORT)", text));
}

}  // namespace

StatusOr<AdminPlace> parse_admin_place(const HttpConfig& http) {
  const std::string& text = http.admin_listen;
  AdminPlace place;
  if (text == "off") return place;
  if (text == "auto") {
    place.kind = AdminPlace::Kind::kAuto;
    return place;
  }
  if (text.starts_with(kUnixPrefix)) {
    place.kind = AdminPlace::Kind::kUnix;
    place.path = text.substr(kUnixPrefix.size());
    if (place.path.empty()) return wrong(text);
    return place;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong(text);
  const auto port = internal::parse_integer(std::string_view(text).substr(colon + 1), 0, 65535);
  if (!port.ok()) return wrong(text);
  place.kind = AdminPlace::Kind::kTcp;
  place.host = text.substr(0, colon);
  place.port = static_cast<uint16_t>(*port);
  if (place.host.starts_with('[') && place.host.ends_with(']')) {
    place.host = place.host.substr(1, place.host.size() - 2);
  } else if (place.host.find(':') != std::string::npos) {
    return wrong(text);
  }
  if (!is_loopback_host(place.host)) {
    return absl::InvalidArgumentError(fmt::format(
        "--admin-listen: {} is not on loopback: give 127.0.0.1, [::1] or localhost, or a Unix socket", text));
  }
  if (http.admin_api_keys.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--admin-listen: {} can be reached by every user of this machine: give --admin-api-key, too", text));
  }
  return place;
}

}  // namespace omnibus
