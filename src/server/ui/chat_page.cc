#include "omnibus/server/ui/chat_page.h"

#include <string>

#include "chat_page_data.h"
#include "http/csp_hash.h"

namespace omnibus {
namespace {

// Of what stands between two tags of the page.
std::string hash_between(std::string_view open, std::string_view close) {
  const std::string_view page(kChatPage);
  const size_t begin = page.find(open) + open.size();
  return csp_hash(page.substr(begin, page.find(close, begin) - begin));
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
