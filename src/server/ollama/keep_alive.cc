#include "keep_alive.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace omnibus {
namespace {

constexpr double kSecond = 1e9;
constexpr double kLongest = 9e18;  // about 285 years

struct Unit {
  std::string_view name;
  double ns;
};
// Longer names before those that they begin with.
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1e3},
                                         {"\xc2\xb5s", 1e3},
                                         {"\xce\xbcs", 1e3},
                                         {"ms", 1e6},
                                         {"s", kSecond},
                                         {"m", 60 * kSecond},
                                         {"h", 3600 * kSecond}}};

int64_t from_ns(double ns) { return ns < 0 || ns > kLongest ? kKeepForever : static_cast<int64_t>(ns); }

// Digits with at most one point among them, at the head of `text`, which loses them.
std::optional<double> take_number(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != text.data() + end) return std::nullopt;
  text.remove_prefix(end);
  return value;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.ns;
  }
  return std::nullopt;
}

std::optional<int64_t> parse_text(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double total = 0;
  for (bool first = true; first || !text.empty(); first = false) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    // A number alone is of seconds, as it is outside a string.
    const bool alone = first && text.empty();
    const auto unit = alone ? std::optional<double>(kSecond) : take_unit(text);
    if (!unit) return std::nullopt;
    total += *number * *unit;
  }
  return from_ns(negative && total > 0 ? -1 : total);
}

}  // namespace

std::optional<int64_t> parse_keep_alive(const Json& value) {
  if (value.is_number()) return from_ns(value.get<double>() * kSecond);
  if (value.is_string()) return parse_text(value.get_ref<const std::string&>());
  return std::nullopt;
}

Status check_keep_alive(std::string_view name, const Json& value) {
  if (parse_keep_alive(value)) return {};
  return invalid_field(
      name, fmt::format("Invalid '{}': must be a number of seconds or a duration like \"5m\", got {}", name,
                        quote_value(value)));
}

}  // namespace omnibus
