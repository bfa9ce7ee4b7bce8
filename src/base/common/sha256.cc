#include "omnibus/base/common/sha256.h"

#include <openssl/sha.h>

namespace omnibus {

Digest256 sha256(std::span<const std::byte> bytes) {
  Digest256 digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

Digest256 sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

}  // namespace omnibus
