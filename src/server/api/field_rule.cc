#include "field_rule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace omnibus {
namespace {

constexpr double kExactInteger = 9007199254740992.0;  // 2^53
constexpr size_t kMaxHeaderValue = 1024;
constexpr size_t kMaxNameInHeader = 64;

const char* type_name(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "a boolean";
    case FieldType::kInteger:
      return "an integer";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kString:
      return "a string";
    case FieldType::kArray:
      return "an array";
    case FieldType::kObject:
      return "an object";
    case FieldType::kAny:
      return "any value";
  }
  return "";
}

bool is_integral(const Json& value) {
  if (value.is_number_integer()) {
    return !value.is_number_unsigned() ||
           value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::abs(number) <= kExactInteger && number == std::floor(number);
}

bool has_type(FieldType type, const Json& value) {
  switch (type) {
    case FieldType::kBool:
      return value.is_boolean();
    case FieldType::kInteger:
      return is_integral(value);
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kString:
      return value.is_string();
    case FieldType::kArray:
      return value.is_array();
    case FieldType::kObject:
      return value.is_object();
    case FieldType::kAny:
      return true;
  }
  return false;
}

// A whole number that no int64 holds is out of range, not of the wrong type.
bool is_huge_integer(const FieldRule& rule, const Json& value) {
  if (rule.type != FieldType::kInteger || !value.is_number() || is_integral(value)) return false;
  const double number = value.get<double>();
  return std::abs(number) > kExactInteger && number == std::floor(number);
}

std::string bounds_text(const FieldRule& rule) {
  if (rule.max == kNoBound) return fmt::format("at least {}", rule.min);
  if (rule.min == -kNoBound) return fmt::format("at most {}", rule.max);
  return fmt::format("between {} and {}", rule.min, rule.max);
}

// What the bounds of a type limit: the value itself, or how much there is of it.
struct Measure {
  const char* code;       // first word of the error code
  const char* unit = "";  // "" for the value itself
  double amount = 0;
};

Measure measure_of(FieldType type, const Json& value) {
  switch (type) {
    case FieldType::kInteger:
      return {"integer", "", value.get<double>()};
    case FieldType::kNumber:
      return {"decimal", "", value.get<double>()};
    case FieldType::kString:
      return {"string", "bytes", static_cast<double>(value.get_ref<const std::string&>().size())};
    case FieldType::kArray:
      return {"array", "items", static_cast<double>(value.size())};
    case FieldType::kObject:
      return {"object", "keys", static_cast<double>(value.size())};
    default:
      return {"", "", 0};
  }
}

Status check_bounds(const FieldRule& rule, const Json& value) {
  const Measure measure = measure_of(rule.type, value);
  const bool below = measure.amount < rule.min;
  if (!below && measure.amount <= rule.max) return {};
  const bool counted = *measure.unit != '\0';
  const std::string code =
      fmt::format("{}_{}_{}", measure.code, below ? "below_min" : "above_max", counted ? "length" : "value");
  const std::string got = counted ? fmt::format("{} {}", measure.amount, measure.unit) : quote_value(value);
  return invalid_field(rule.name,
                       fmt::format("Invalid '{}': must be {}{}{}, got {}", rule.name, bounds_text(rule),
                                   counted ? " " : "", measure.unit, got),
                       code);
}

// Whether one of the words of `words`, separated by a space, satisfies `matches`.
template <typename Matches>
bool any_word(std::string_view words, const Matches& matches) {
  while (!words.empty()) {
    const size_t space = std::min(words.find(' '), words.size());
    if (matches(words.substr(0, space))) return true;
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return false;
}

bool is_neutral(const FieldRule& rule, const Json& value) {
  return any_word(rule.neutral,
                  [&](std::string_view word) { return Json::parse(word, nullptr, false) == value; });
}

}  // namespace

Status check_field(const FieldRule& rule, const Json& value) {
  if (rule.verdict == Verdict::kUnsupported) {
    if (is_neutral(rule, value)) return {};
    return invalid_field(rule.name,
                         fmt::format("'{}' is not supported, got {}", rule.name, quote_value(value)),
                         "unsupported_parameter");
  }
  if (is_huge_integer(rule, value)) {
    const bool below = value.get<double>() < 0;
    return invalid_field(
        rule.name, fmt::format("Invalid '{}': {} is not a 64-bit integer", rule.name, quote_value(value)),
        below ? "integer_below_min_value" : "integer_above_max_value");
  }
  if (!has_type(rule.type, value)) {
    return invalid_field(
        rule.name,
        fmt::format("Invalid '{}': must be {}, got {}", rule.name, type_name(rule.type), quote_value(value)),
        "invalid_type");
  }
  OMNIBUS_RETURN_IF_ERROR(check_bounds(rule, value));
  return rule.check != nullptr ? rule.check(rule.name, value) : Status();
}

Status unknown_field(const std::string& name) {
  const std::string quoted = quote_value(Json(name), kMaxNameInHeader);
  return invalid_field(name.size() <= kMaxNameInHeader ? name : quoted, "Unknown field " + quoted,
                       "unknown_parameter");
}

Status note_unknown(const std::string& name, bool strict, std::vector<std::string>& ignored) {
  if (strict) return unknown_field(name);
  ignored.push_back(name);
  return {};
}

Status note_unknown_keys(const FieldRule& rule, const Json& value, bool strict,
                         std::vector<std::string>& ignored) {
  if (rule.keys.empty()) return {};
  for (const auto& [key, item] : value.items()) {
    const bool known = any_word(rule.keys, [&key = key](std::string_view word) { return word == key; });
    if (known || item.is_null()) continue;
    OMNIBUS_RETURN_IF_ERROR(note_unknown(fmt::format("{}.{}", rule.name, key), strict, ignored));
  }
  return {};
}

int64_t integer_of(const Json& value) {
  return value.is_number_float() ? static_cast<int64_t>(value.get<double>()) : value.get<int64_t>();
}

std::string ignored_fields_header(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    std::string safe = name.substr(0, kMaxNameInHeader);
    for (char& c : safe) {
      if (c <= 0x20 || c >= 0x7F || c == ',') c = '?';
    }
    if (out.size() + safe.size() + 2 > kMaxHeaderValue) return out + ", ...";
    if (!out.empty()) out += ", ";
    out += safe;
  }
  return out;
}

}  // namespace omnibus
