// The chat page: one self-contained file, embedded at build time from src/server/ui/chat_page.html.
#pragma once

#include <string_view>

namespace omnibus {

std::string_view chat_page_html();
// Content-Security-Policy: nothing from elsewhere; the page's own script and style by their hashes.
std::string_view chat_page_policy();

}  // namespace omnibus
