// Random texts for property tests: pieces of the golden strings, special tokens and broken bytes, joined.
#pragma once

#include <random>
#include <string>

#include "golden.h"

namespace omnibus::testing {

inline std::string random_text(std::mt19937_64& rng, const std::vector<std::string>& strings, size_t pieces) {
  std::string text;
  for (size_t i = 0; i < pieces; ++i) {
    const std::string& from = strings[rng() % strings.size()];
    const size_t begin = from.empty() ? 0 : rng() % from.size();
    text += from.substr(begin, 1 + rng() % 24);
  }
  return text;
}

// Whether every byte belongs to a character, by trying the definition: independent of the code under test.
inline bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return k < text.size() ? static_cast<uint8_t>(text[k]) : 0u; };
    const uint32_t first = byte(i);
    const size_t length = first < 0x80       ? 1
                          : first >> 5 == 6  ? 2
                          : first >> 4 == 14 ? 3
                          : first >> 3 == 30 ? 4
                                             : 0;
    if (length == 0) return false;
    uint32_t code = length == 1 ? first : first & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      if (byte(i + k) >> 6 != 2) return false;
      code = code << 6 | (byte(i + k) & 0x3F);
    }
    const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

}  // namespace omnibus::testing
