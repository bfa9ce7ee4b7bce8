#include "digest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <openssl/evp.h>
#include <unistd.h>

namespace omnibus {

StatusOr<std::string> sha256_of_fd(int fd, const std::function<void(uint64_t)>& on_bytes,
                                   const std::stop_token& stop) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("OpenSSL has no SHA-256");
  }
  std::vector<unsigned char> buffer(1 << 20);
  uint64_t offset = 0;
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::DataLossError(std::string("reading: ") + std::strerror(errno));
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
    if (on_bytes) on_bytes(offset);
  }
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), raw, &size);
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kHex[raw[i] >> 4];
    hex += kHex[raw[i] & 15];
  }
  return hex;
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace omnibus
