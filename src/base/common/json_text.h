// JSON string literals, for modules that have no JSON library.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// Appends `text` in quotes. Bytes that are not UTF-8 become U+FFFD, control characters \u escapes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace omnibus
