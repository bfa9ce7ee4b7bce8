#include "utf8.h"

#include <cstring>

namespace omnibus {
namespace {

// Length a lead byte announces and the range allowed for the byte after it; length 0: no lead byte.
struct Lead {
  uint32_t length;
  uint8_t low, high;
};

Lead classify(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step next_utf8(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return {first, 1, true, false};
  const Lead lead = classify(first);
  if (lead.length == 0) return {0, 1, false, false};
  char32_t code = first & (0xFFu >> (lead.length + 1));
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {0, i, false, true};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {0, i, false, false};
    code = code << 6 | (at(i) & 0x3Fu);
  }
  return {code, lead.length, true, false};
}

size_t find_non_ascii(std::string_view bytes, size_t from) {
  size_t i = from;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < bytes.size() && static_cast<uint8_t>(bytes[i]) < 0x80) ++i;
  return i;
}

size_t find_invalid_utf8(std::string_view bytes, size_t from) {
  size_t i = from;
  while ((i = find_non_ascii(bytes, i)) < bytes.size()) {
    while (i < bytes.size() && static_cast<uint8_t>(bytes[i]) >= 0x80) {
      const Utf8Step step = next_utf8(bytes.substr(i));
      if (!step.valid) return i;
      i += step.length;
    }
  }
  return i;
}

void append_utf8(char32_t code, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace omnibus
