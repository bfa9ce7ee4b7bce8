#include "omnibus/server/http/authenticator.h"

#include <openssl/crypto.h>

#include "omnibus/base/common/sha256.h"

namespace omnibus {
namespace {

bool is_bearer(std::string_view scheme) {
  constexpr std::string_view kBearer = "bearer";
  if (scheme.size() != kBearer.size()) return false;
  for (size_t i = 0; i < scheme.size(); ++i) {
    if ((scheme[i] | 0x20) != kBearer[i]) return false;
  }
  return true;
}

// The key in "Bearer KEY"; empty for any other scheme.
std::string_view bearer_key(std::string_view value) {
  const size_t space = value.find(' ');
  if (space == std::string_view::npos || !is_bearer(value.substr(0, space))) return {};
  value.remove_prefix(space);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return value;
}

Status unauthenticated() {
  return with_detail(absl::UnauthenticatedError("Missing or unknown API key: send it as \"Authorization: "
                                                "Bearer KEY\" or \"X-Api-Key: KEY\""),
                     ErrorDetail{.http = 401, .type = {}, .code = "invalid_api_key", .param = {}});
}

}  // namespace

Authenticator::Authenticator(std::span<const ApiKey> keys, bool loopback_bind)
    : loopback_bind_(loopback_bind) {
  for (const ApiKey& key : keys) {
    digests_.push_back(sha256(key.key));
    names_.push_back(key.name);
  }
}

Authenticator Authenticator::for_admin(std::span<const ApiKey> keys) {
  Authenticator auth(keys, /*loopback_bind=*/true);
  auth.admin_ = true;
  return auth;
}

StatusOr<std::string> Authenticator::check(Scope scope, const HttpRequest& request) const {
  if (scope == Scope::kPublic || (scope == Scope::kMetrics && loopback_bind_)) return std::string();
  if (scope == Scope::kAdmin && !admin_) {
    return absl::PermissionDeniedError("This route is not served on the public listener");
  }
  if (digests_.empty()) return std::string();
  for (const auto& [name, value] : request.headers) {
    const std::string* found = nullptr;
    if (name == "authorization") found = name_of(bearer_key(value));
    if (name == "x-api-key") found = name_of(value);
    if (found != nullptr) return *found;
  }
  return unauthenticated();
}

const std::string* Authenticator::name_of(std::string_view key) const {
  if (key.empty()) return nullptr;
  const Digest256 digest = sha256(key);
  // Every known key is compared, whichever matches.
  size_t found = names_.size();
  for (size_t i = 0; i < digests_.size(); ++i) {
    const bool equal = CRYPTO_memcmp(digests_[i].data(), digest.data(), digest.size()) == 0;
    found = equal ? i : found;
  }
  return found < names_.size() ? &names_[found] : nullptr;
}

}  // namespace omnibus
