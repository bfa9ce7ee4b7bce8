// Code points, character classes and case as Python's str sees them. Bytes that are not UTF-8 count as one
// code point each and are copied unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace omnibus::jinja {

struct CodePoint {
  int32_t value = 0;  // -1: not UTF-8
  uint32_t bytes = 1;
};
// `at` < text.size().
CodePoint decode_at(std::string_view text, size_t at);
// The code point that ends before `end` (> 0).
CodePoint decode_before(std::string_view text, size_t end);
void append_utf8(std::string& out, int32_t code_point);
size_t count_code_points(std::string_view text);
// Byte offset of code point `index` (clamped to the end), counted from byte `from`.
size_t offset_of(std::string_view text, size_t index, size_t from = 0);
// Offset of the first invalid byte, or npos.
size_t find_invalid_utf8(std::string_view text);

// str.isspace() of one character; also what strip() and split() use.
bool is_space(int32_t c);
// What repr() shows as it is.
bool is_printable(int32_t c);
bool is_upper(int32_t c);
bool is_lower(int32_t c);
bool is_title(int32_t c);
inline bool is_cased(int32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }
bool is_alpha(int32_t c);
bool is_decimal(int32_t c);  // Nd
bool is_digit(int32_t c);    // Nd, superscripts, circled digits
bool is_numeric(int32_t c);  // Nd, Nl, No; unlike Python not the Chinese numerals, which are letters too
bool is_identifier_start(int32_t c);
bool is_word(int32_t c);  // regex \w

// Full case mappings (one character may become several, as in 'ß'.upper() == 'SS'), appended to `out`.
void append_upper(std::string& out, int32_t c);
void append_title(std::string& out, int32_t c);
// `text` and `at` give the context that a final sigma needs.
void append_lower(std::string& out, std::string_view text, size_t at);
void append_casefold(std::string& out, int32_t c);

}  // namespace omnibus::jinja
