#include "omnibus/server/ui/chat_page.h"

#include <array>
#include <string>

#include <openssl/evp.h>

#include "chat_page_data.h"

namespace omnibus {
namespace {

// 'sha256-<base64>' of what stands between two tags of the page, for its policy.
std::string hash_between(std::string_view open, std::string_view close) {
  const std::string_view page(kChatPage);
  const size_t begin = page.find(open) + open.size();
  const std::string_view text = page.substr(begin, page.find(close, begin) - begin);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> base64{};
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
  return "'sha256-" + std::string(base64.begin(), base64.begin() + length) + "'";
}

}  // namespace

std::string_view chat_page_html() { return kChatPage; }

std::string_view chat_page_policy() {
  // Heights and places that scripts set go through CSSOM, which style-src does not concern. The only image is
  // the icon in the page's head. Trusted types: the browser itself refuses to make markup or script out of a
  // string.
  static const std::string policy =
      "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'; script-src " +
      hash_between("<script>", "</script>") + "; style-src " + hash_between("<style>", "</style>");
  return policy;
}

}  // namespace omnibus
