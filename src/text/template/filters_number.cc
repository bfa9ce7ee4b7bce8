// Filters that make numbers.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "filters.h"
#include "interpreter.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

// Text without white space around it; underscores between digits are dropped, others refused.
std::optional<std::string> number_text(const Text& text) {
  std::string_view view = text.view();
  while (!view.empty() && is_space(decode_at(view, 0).value)) view.remove_prefix(decode_at(view, 0).bytes);
  while (!view.empty() && is_space(decode_before(view, view.size()).value))
    view.remove_suffix(decode_before(view, view.size()).bytes);
  std::string out;
  for (size_t i = 0; i < view.size(); ++i) {
    if (view[i] != '_') {
      out.push_back(view[i]);
      continue;
    }
    const auto alnum = [&](size_t at) {
      return at < view.size() && std::isalnum(static_cast<unsigned char>(view[at])) != 0;
    };
    if (i == 0 || !alnum(i - 1) || !alnum(i + 1)) return std::nullopt;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

unsigned digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A' + 10);
  return 99;
}

// int(text, base); nothing where Python has a ValueError.
std::optional<Integer> parse_integer(const Text& text, unsigned base) {
  const std::optional<std::string> trimmed = number_text(text);
  if (!trimmed) return std::nullopt;
  std::string_view digits = *trimmed;
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  const std::string_view prefix = digits.substr(0, 2);
  const auto prefixed = [&](unsigned wanted, char letter) {
    const bool found = prefix.size() == 2 && prefix[0] == '0' && (prefix[1] | 0x20) == letter;
    if (!found || (base != wanted && base != 0)) return false;
    base = wanted;
    digits.remove_prefix(2);
    return true;
  };
  if (!prefixed(16, 'x') && !prefixed(8, 'o')) prefixed(2, 'b');
  if (base == 0) base = 10;
  if (digits.empty()) return std::nullopt;
  Integer value = 0;
  for (const char c : digits) {
    if (digit_of(c) >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, static_cast<Integer>(base), &value) ||
        __builtin_add_overflow(value, static_cast<Integer>(digit_of(c)), &value))
      fail("integer too large: numbers beyond 128 bits are not supported");
  }
  return negative ? -value : value;
}

// float(text).
std::optional<double> parse_float(const Text& text) {
  const std::optional<std::string> trimmed = number_text(text);
  if (!trimmed) return std::nullopt;
  if (trimmed->find_first_of("xXpP(") != std::string::npos)
    return std::nullopt;  // C reads hex floats, Python not
  char* end = nullptr;
  const double value = std::strtod(trimmed->c_str(), &end);
  if (end != trimmed->c_str() + trimmed->size()) return std::nullopt;
  return value;
}

std::optional<double> to_float(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return value.as_double();
  return value.is_text() ? parse_float(*value.text()) : std::nullopt;
}

Integer truncated(double d) {
  if (!(d > -1e38 && d < 1e38)) fail("cannot convert this float to an integer");
  return static_cast<Integer>(d);
}

Value to_int(Interpreter&, const Value& input, const CallArgs& args) {
  const BoundArgs bound("int", args, {"default", "base"});
  const Value fallback = bound.value_or(0, 0);
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_integral()) return input.integer();
  if (input.type() == Type::kFloat) {
    if (std::isnan(input.real())) return fallback;  // a ValueError in Python, twice
    return truncated(input.real());
  }
  if (!input.is_text()) return fallback;
  const Integer base = bound.integer(1, 10);
  if (base == 0 || (base >= 2 && base <= 36))
    if (const auto value = parse_integer(*input.text(), static_cast<unsigned>(base))) return *value;
  const auto real = parse_float(*input.text());
  if (!real || !std::isfinite(*real)) return fallback;
  return truncated(*real);
}

Value to_real(Interpreter&, const Value& input, const CallArgs& args) {
  const BoundArgs bound("float", args, {"default"});
  const auto real = to_float(input);
  return real ? Value(*real) : bound.value_or(0, 0.0);
}

Value absolute(Interpreter&, const Value& input, const CallArgs& args) {
  BoundArgs("abs", args, {});
  if (input.is_integral()) return input.integer() < 0 ? negate(input) : Value(input.integer());
  if (input.type() == Type::kFloat) return std::fabs(input.real());
  if (input.is_undefined()) fail_undefined(input);
  fail(std::string("bad operand type for abs(): '") + type_name(input) + "'");
}

// round() to the nearest decimal, ties to even, decided on the exact binary value as in Python.
double round_decimal(double value, Integer precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < -308) return 0.0 * value;
  if (precision >= 0) {
    char buffer[700];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), value);
    return std::strtod(buffer, nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / unit) * unit;
}

Value round_integer(Integer value, Integer precision) {
  if (precision >= 0) return value;
  if (precision < -37) return 0;
  Integer unit = 1;
  for (Integer i = 0; i > precision; --i) unit *= 10;
  Integer rest = value % unit;
  if (rest < 0) rest += unit;
  Integer low = value - rest;
  const bool odd = (low / unit) % 2 != 0;
  if (rest * 2 > unit || (rest * 2 == unit && odd)) low += unit;
  return low;
}

Value round_filter(Interpreter&, const Value& input, const CallArgs& args) {
  const BoundArgs bound("round", args, {"precision", "method"});
  if (input.is_undefined()) fail_undefined(input);
  const std::string method = bound.has(1) ? std::string(bound.text(1)->view()) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (!input.is_number()) fail(std::string("type ") + type_name(input) + " doesn't define __round__ method");
  const Integer precision = bound.integer(0, 0);
  if (method == "common") {
    if (input.is_integral()) return round_integer(input.integer(), precision);
    return round_decimal(input.real(), precision);
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.as_double() * unit;
  if (!std::isfinite(scaled)) fail("cannot convert this float to an integer");
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

constexpr NamedFilter kFilters[] = {
    {"int", to_int},
    {"float", to_real},
    {"abs", absolute},
    {"round", round_filter},
};

}  // namespace

FilterTable number_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace omnibus::jinja
