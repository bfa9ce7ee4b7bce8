#include "omnibus/client/printable.h"

#include <fmt/format.h>

namespace omnibus::client {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the character that text begins with; 0 if it is none or a control character.
size_t shown_bytes(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  const bool c1 = first == 0xC2 && byte_at(text, 1) < 0xA0;
  return c1 ? 0 : size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = shown_bytes(text);
    if (size > 0) {
      out += text.substr(0, size);
    } else {
      out += fmt::format("\\x{:02x}", byte_at(text, 0));
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return out;
}

}  // namespace omnibus::client
