// UTF-8 as Unicode 15 §3.9 defines it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibus {

// What stands at the start of some bytes.
struct Utf8Step {
  char32_t code = 0;       // the character when valid
  uint32_t length = 0;     // its bytes; of invalid input, those of the maximal subpart (>= 1)
  bool valid = false;      // false: the bytes are not a character
  bool truncated = false;  // invalid only because the input ends: more bytes may complete it
};

// `bytes` must not be empty.
Utf8Step next_utf8(std::string_view bytes);

// Offset of the first byte at or after `from` that is not part of a valid character; bytes.size() if none.
size_t find_invalid_utf8(std::string_view bytes, size_t from);

// Offset of the first byte at or after `from` that is >= 0x80; bytes.size() if none.
size_t find_non_ascii(std::string_view bytes, size_t from);

void append_utf8(char32_t code, std::string& out);

}  // namespace omnibus
