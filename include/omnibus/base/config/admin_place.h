// Where the admin routes are, as --admin-listen says it.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/base/config/commands.h"

namespace omnibus {

struct AdminPlace {
  enum class Kind { kOff, kAuto, kUnix, kTcp };
  Kind kind = Kind::kOff;
  std::string path;   // kUnix
  std::string host;   // kTcp: a loopback address or localhost, without brackets
  uint16_t port = 0;  // kTcp; 0: any free one
};

// Errors name the flag: another form, an address that other machines reach, TCP without --admin-api-key.
StatusOr<AdminPlace> parse_admin_place(const HttpConfig& http);

}  // namespace omnibus
