#include "omnibus/server/http/authenticator.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

std::array<uint8_t, 32> sha256(std::string_view text) {
  std::array<uint8_t, 32> digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  OMNIBUS_CHECK(ok == 1 && size == digest.size(), "SHA-256 is not available");
  return digest;
}

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

Authenticator::Authenticator(std::span<const std::string> keys, bool loopback_bind)
    : loopback_bind_(loopback_bind) {
  for (const std::string& key : keys) keys_.push_back(sha256(key));
}

Status Authenticator::check(Scope scope, const HttpRequest& request) const {
  if (scope == Scope::kPublic || (scope == Scope::kMetrics && loopback_bind_)) return {};
  if (scope == Scope::kAdmin) {
    return absl::PermissionDeniedError("This route is not served on the public listener");
  }
  if (keys_.empty()) return {};
  for (const auto& [name, value] : request.headers) {
    if (name == "authorization" && knows(bearer_key(value))) return {};
    if (name == "x-api-key" && knows(value)) return {};
  }
  return unauthenticated();
}

bool Authenticator::knows(std::string_view key) const {
  if (key.empty()) return false;
  const Digest digest = sha256(key);
  int found = 0;
  for (const Digest& known : keys_) {
    found |= static_cast<int>(CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0);
  }
  return found != 0;
}

}  // namespace omnibus
