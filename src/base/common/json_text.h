// JSON string literals, for modules that have no JSON library.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// Whether the character at the front is one of U+0080 to U+009F: two bytes, by which terminals can be
// steered.
bool is_c1_control(std::string_view text);

// Appends `text` in quotes. Bytes that are not UTF-8 become U+FFFD, control characters (C0, DEL, C1) \u
// escapes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace omnibus
