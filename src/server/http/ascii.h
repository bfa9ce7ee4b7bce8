// ASCII only: what HTTP means by letters and hexadecimal digits, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// 0 to 15, or -1 for what is no hexadecimal digit.
inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

}  // namespace omnibus
