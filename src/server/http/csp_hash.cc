#include "csp_hash.h"

#include <array>

#include <openssl/evp.h>

#include "omnibus/base/common/sha256.h"

namespace omnibus {

std::string csp_hash(std::string_view text) {
  const Digest256 digest = sha256(text);
  std::array<unsigned char, 2 * std::tuple_size_v<Digest256>> base64{};
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return "'sha256-" + std::string(base64.begin(), base64.begin() + length) + "'";
}

}  // namespace omnibus
