#include "string_literal.h"

#include <cstdio>

#include "unicode.h"

namespace omnibus::jinja {
namespace {

// Value of exactly `count` hex digits at `at`, or -1.
int64_t hex(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int64_t value = 0;
  for (size_t i = at; i < at + count; ++i) {
    const char c = text[i];
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case '\\':
      return '\\';
    case '\'':
      return '\'';
    case '"':
      return '"';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

// Jinja2 turns non-ASCII characters into escapes before it reads escapes; behind a backslash the name of the
// escape stays in the text.
void append_escape_name(std::string& out, int32_t c) {
  char name[16];
  std::snprintf(name, sizeof name, c < 0x100 ? "\\x%02x" : (c < 0x10000 ? "\\u%04x" : "\\U%08x"),
                static_cast<unsigned>(c));
  out += name;
}

}  // namespace

const char* unescape(std::string_view literal, std::string& out) {
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\' || i + 1 >= literal.size()) {
      out.push_back(literal[i++]);
      continue;
    }
    const char c = literal[i + 1];
    if (const char simple = simple_escape(c); simple != 0) {
      out.push_back(simple);
      i += 2;
    } else if (c == '\n') {
      i += 2;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : (c == 'u' ? 4 : 8);
      const int64_t value = hex(literal, i + 2, digits);
      if (value < 0) return c == 'x' ? "truncated \\xXX escape" : "truncated \\uXXXX or \\UXXXXXXXX escape";
      if (value > 0x10FFFF) return "illegal Unicode character in a string literal";
      if (value >= 0xD800 && value <= 0xDFFF) return "surrogates are not allowed in a string literal";
      append_utf8(out, static_cast<int32_t>(value));
      i += 2 + digits;
    } else if (c >= '0' && c <= '7') {
      int32_t value = 0;
      size_t j = i + 1;
      for (; j < literal.size() && j < i + 4 && literal[j] >= '0' && literal[j] <= '7'; ++j)
        value = value * 8 + (literal[j] - '0');
      append_utf8(out, value);
      i = j;
    } else if (c == 'N') {
      return "\\N{...} escapes are not supported";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      const CodePoint point = decode_at(literal, i + 1);
      append_escape_name(out, point.value);
      i += 1 + point.bytes;
    } else {
      out.push_back('\\');
      out.push_back(c);
      i += 2;
    }
  }
  return nullptr;
}

}  // namespace omnibus::jinja
