#include "unicode.h"

#include <array>

#include <utf8proc.h>

namespace omnibus::jinja {
namespace {

utf8proc_category_t category(int32_t c) { return c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c); }

// Characters with the derived properties Other_Lowercase / Other_Uppercase that have no case category.
bool other_lowercase(int32_t c) {
  return c == 0xAA || c == 0xBA || (c >= 0x2B0 && c <= 0x2B8) || c == 0x2C0 || c == 0x2C1 ||
         (c >= 0x2E0 && c <= 0x2E4) || c == 0x345 || c == 0x37A || (c >= 0x1D2C && c <= 0x1D6A) ||
         c == 0x1D78 || (c >= 0x1D9B && c <= 0x1DBF) || c == 0x2071 || c == 0x207F ||
         (c >= 0x2090 && c <= 0x209C) || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9) ||
         c == 0x2C7C || c == 0x2C7D || c == 0xA69C || c == 0xA69D || c == 0xA770 || c == 0xA7F8 ||
         c == 0xA7F9 || (c >= 0xAB5C && c <= 0xAB5F) || c == 0x10780 || (c >= 0x10783 && c <= 0x10785) ||
         (c >= 0x10787 && c <= 0x107B0) || (c >= 0x107B2 && c <= 0x107BA);
}
bool other_uppercase(int32_t c) {
  return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

// Full case folding; returns the number of code points (0 when there is none).
int fold(int32_t c, std::array<utf8proc_int32_t, 8>& out) {
  int boundclass = 0;
  const utf8proc_ssize_t n =
      utf8proc_decompose_char(c, out.data(), out.size(), UTF8PROC_CASEFOLD, &boundclass);
  return n > 0 && n <= static_cast<utf8proc_ssize_t>(out.size()) ? static_cast<int>(n) : 0;
}

// Skipped when looking for the letters around a sigma.
bool case_ignorable(int32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x387 || c == 0x55F || c == 0x5F4 ||
             c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027 || c == 0xFE13 || c == 0xFE52 ||
             c == 0xFE55 || c == 0xFF07 || c == 0xFF0E || c == 0xFF1A;
  }
}

// A capital sigma is final when a letter comes before it and none after it.
bool is_final_sigma(std::string_view text, size_t at) {
  bool before = false;
  for (size_t i = at; i > 0;) {
    const CodePoint c = decode_before(text, i);
    i -= c.bytes;
    if (case_ignorable(c.value)) continue;
    before = is_cased(c.value);
    break;
  }
  if (!before) return false;
  for (size_t i = at + 2; i < text.size();) {
    const CodePoint c = decode_at(text, i);
    i += c.bytes;
    if (case_ignorable(c.value)) continue;
    return !is_cased(c.value);
  }
  return true;
}

}  // namespace

CodePoint decode_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                              static_cast<utf8proc_ssize_t>(text.size() - at), &value);
  if (n <= 0) return {-1, 1};
  return {value, static_cast<uint32_t>(n)};
}

CodePoint decode_before(std::string_view text, size_t end) {
  for (size_t back = 1; back <= 4 && back <= end; ++back) {
    const auto byte = static_cast<unsigned char>(text[end - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const CodePoint c = decode_at(text.substr(0, end), end - back);
    if (c.bytes == back) return c;
    break;
  }
  return {-1, 1};
}

void append_utf8(std::string& out, int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t n = utf8proc_encode_char(code_point, bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), n > 0 ? static_cast<size_t>(n) : 0);
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += decode_at(text, i).bytes) ++count;
  return count;
}

size_t offset_of(std::string_view text, size_t index, size_t from) {
  while (index > 0 && from < text.size()) {
    from += decode_at(text, from).bytes;
    --index;
  }
  return from;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_at(text, i);
    if (c.value < 0) return i;
    i += c.bytes;
  }
  return std::string_view::npos;
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_printable(int32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(int32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || other_uppercase(c); }
bool is_lower(int32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || other_lowercase(c); }
bool is_title(int32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_alpha(int32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}
bool is_decimal(int32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(int32_t c) {
  // The property Numeric_Type=Digit: superscripts, circled digits and their like.
  static constexpr int32_t kRanges[][2] = {
      {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
      {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
      {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
      {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  if (is_decimal(c)) return true;
  for (const auto& range : kRanges)
    if (c >= range[0] && c <= range[1]) return true;
  return false;
}
bool is_numeric(int32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}
bool is_identifier_start(int32_t c) { return c == '_' || is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL; }
bool is_word(int32_t c) { return c == '_' || is_alpha(c) || is_numeric(c); }

void append_upper(std::string& out, int32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
    return;
  }
  std::array<utf8proc_int32_t, 8> folded{};
  const int n = fold(c, folded);
  // A capital that folds to several ('ẞ', 'İ') is its own upper case.
  if (n < 2 || category(c) == UTF8PROC_CATEGORY_LU) {
    append_utf8(out, c == 0xDF ? c : utf8proc_toupper(c));
    return;
  }
  for (int i = 0; i < n; ++i) append_utf8(out, utf8proc_toupper(folded[i]));
}

void append_title(std::string& out, int32_t c) {
  if (c < 0x80) return append_upper(out, c);
  const int32_t simple = c == 0xDF ? c : utf8proc_totitle(c);
  std::array<utf8proc_int32_t, 8> folded{};
  const int n = fold(c, folded);
  if (simple != c || n < 2 || is_upper(c) || is_title(c)) return append_utf8(out, simple);
  // 'ŉ' folds to an apostrophe and an n: the letter is the capital.
  const int capital = is_cased(folded[0]) ? 0 : 1;
  for (int i = 0; i < n; ++i) {
    // An iota that stood below its vowel stays there.
    const int32_t lower = folded[i] == 0x3B9 && i > 0 ? 0x345 : folded[i];
    append_utf8(out, i == capital ? utf8proc_totitle(folded[i]) : lower);
  }
}

void append_lower(std::string& out, std::string_view text, size_t at) {
  const CodePoint c = decode_at(text, at);
  if (c.value < 0) {
    out.append(text.substr(at, c.bytes));
  } else if (c.value == 0x130) {
    append_utf8(out, 'i');
    append_utf8(out, 0x307);
  } else if (c.value == 0x3A3) {
    append_utf8(out, is_final_sigma(text, at) ? 0x3C2 : 0x3C3);
  } else {
    append_utf8(out, utf8proc_tolower(c.value));
  }
}

void append_casefold(std::string& out, int32_t c) {
  std::array<utf8proc_int32_t, 8> folded{};
  const int n = fold(c, folded);
  if (n == 0) return append_utf8(out, c);
  for (int i = 0; i < n; ++i) append_utf8(out, folded[i]);
}

}  // namespace omnibus::jinja
