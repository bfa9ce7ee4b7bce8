// Number layout and padding for % and str.format().
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "format.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

// More digits than any use of a template; keeps snprintf's buffer small.
constexpr int kMaxPrecision = 300;

std::string in_base(Integer value, unsigned base, bool upper) {
  const bool negative = value < 0;
  auto rest = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  const char* const alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits.push_back(alphabet[static_cast<unsigned>(rest % base)]);
    rest /= base;
  } while (rest != 0);
  if (negative) digits.push_back('-');
  return {digits.rbegin(), digits.rend()};
}

std::string group_digits(const std::string& digits, char separator, size_t every) {
  size_t end = 0;
  while (end < digits.size() && std::isalnum(static_cast<unsigned char>(digits[end])) != 0 &&
         digits[end] != 'e')
    ++end;
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % every == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out + digits.substr(end);
}

std::string integer_digits(const Value& value, const FormatSpec& spec) {
  const Integer i = value.integer();
  switch (spec.type) {
    case 'x':
      return in_base(i, 16, false);
    case 'X':
      return in_base(i, 16, true);
    case 'o':
      return in_base(i, 8, false);
    case 'b':
      return in_base(i, 2, false);
    default:
      return format_integer(i);
  }
}

std::string float_digits(double value, const FormatSpec& spec) {
  if (spec.type == 0 && spec.precision < 0) return format_float(value);
  if (spec.precision > kMaxPrecision) fail("precision too large in a format");
  char type = spec.type == 0 ? 'g' : spec.type;
  if (type == '%') {
    type = 'f';
    value *= 100;
  }
  const char form[] = {'%', '.', '*', type, 0};
  const char alternate[] = {'%', '#', '.', '*', type, 0};
  char buffer[700];
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  std::snprintf(buffer, sizeof buffer, spec.alternate ? alternate : form, precision, value);
  std::string text = buffer;
  if (spec.type == 0 && text.find_first_of(".en") == std::string::npos) text += ".0";
  if (spec.type == '%') text += '%';
  return text;
}

}  // namespace

std::string format_number(const Value& value, const FormatSpec& spec) {
  std::string text;
  const bool as_float = value.type() == Type::kFloat ||
                        (spec.type != 0 && std::string("eEfFgG%").find(spec.type) != std::string::npos);
  if (as_float) {
    if (spec.type != 0 && std::string("eEfFgG%").find(spec.type) == std::string::npos)
      fail(std::string("Unknown format code '") + spec.type + "' for object of type 'float'");
    text = float_digits(value.as_double(), spec);
  } else {
    text = integer_digits(value, spec);
  }
  const bool negative = !text.empty() && text[0] == '-';
  std::string digits = negative ? text.substr(1) : text;
  if (spec.grouping != 0)
    digits =
        group_digits(digits, spec.grouping, spec.type == 'x' || spec.type == 'b' || spec.type == 'o' ? 4 : 3);
  std::string sign = negative ? "-" : (spec.sign == '-' ? "" : std::string(1, spec.sign));
  if (spec.alternate && !as_float &&
      (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b'))
    sign += std::string("0") + spec.type;
  const bool pad_zero = spec.zero || spec.align == '=';
  if (pad_zero && spec.width > sign.size() + digits.size() && (spec.align == 0 || spec.align == '=')) {
    if (spec.width > 4096) fail("width too large in a number format");
    std::string pad;
    const std::string& fill = spec.align == '=' && !spec.zero ? spec.fill : "0";
    for (size_t i = sign.size() + digits.size(); i < spec.width; ++i) pad += fill;
    digits = pad + digits;
  }
  return sign + digits;
}

void append_padded(TextBuilder& out, const Text& text, const FormatSpec& spec, char default_align) {
  const size_t length = text.ascii() ? text.size() : count_code_points(text.view());
  const size_t pad = spec.width > length ? spec.width - length : 0;
  const char align = spec.align == 0 || spec.align == '=' ? default_align : spec.align;
  const size_t left = align == '<' ? 0 : (align == '>' ? pad : pad / 2);
  out.append_repeated(spec.fill, left, true);
  out.append(text);
  out.append_repeated(spec.fill, pad - left, true);
}

}  // namespace omnibus::jinja
