// Authenticator: who may call a route. Keys are kept and compared as SHA-256, in constant time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/sha256.h"
#include "omnibus/base/common/status.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// Immutable; any thread.
class Authenticator {
 public:
  // No keys: everybody may infer (the command line refuses that beyond loopback unless told to).
  Authenticator(std::span<const ApiKey> keys, bool loopback_bind);

  // Of an admin listener: everything but kPublic and kMetrics wants one of `keys`; none given: nothing does
  // (a Unix socket, which the file system guards).
  static Authenticator for_admin(std::span<const ApiKey> keys);

  // The name of the key (empty where none is needed), or 401 (`Authorization: Bearer KEY`, scheme in any
  // case, or `X-Api-Key: KEY`), or 403 for kAdmin where it is not served.
  StatusOr<std::string> check(Scope scope, const HttpRequest& request) const;

 private:
  // nullptr: not one of ours.
  const std::string* name_of(std::string_view key) const;

  std::vector<Digest256> digests_;
  std::vector<std::string> names_;  // of the same index
  bool loopback_bind_;
  bool admin_ = false;
};

}  // namespace omnibus
