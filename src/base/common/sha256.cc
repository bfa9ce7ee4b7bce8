#include "omnibus/base/common/sha256.h"

#include <memory>

#include <openssl/evp.h>

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

// Looking the algorithm up and making a context cost more than hashing a KV block's key: once per thread.
class Hasher {
 public:
  Hasher() : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    OMNIBUS_CHECK(algorithm_ && context_, "OpenSSL has no SHA-256");
  }
  Digest256 hash(std::span<const std::byte> bytes) {
    Digest256 digest{};
    const bool done = EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) == 1 &&
                      EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1 &&
                      EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1;
    OMNIBUS_CHECK(done, "OpenSSL could not hash");
    return digest;
  }

 private:
  struct Free {
    void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD, Free> algorithm_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

Digest256 sha256(std::span<const std::byte> bytes) {
  thread_local Hasher hasher;
  return hasher.hash(bytes);
}

Digest256 sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

}  // namespace omnibus
