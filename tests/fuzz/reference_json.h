// Boost.JSON as the second opinion of the fuzz targets: another parser, another author.
#pragma once

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "omnibus/server/http/json_body.h"

namespace omnibus::fuzz {

inline std::optional<boost::json::value> reference_parse(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::json::error_code error;
  auto value = boost::json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

// Boost's doubles are off by a unit in the last place now and then, and it has its own idea of when an
// integer becomes one.
inline bool same_number(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-14 * std::max(std::abs(a), std::abs(b)) ||
         (std::abs(a) < 1e-300 && std::abs(b) < 1e-300);
}

inline bool same(const Json& a, const boost::json::value& b) {
  if (a.is_null()) return b.is_null();
  if (a.is_boolean()) return b.is_bool() && b.get_bool() == a.get<bool>();
  if (a.is_number()) return b.is_number() && same_number(a.get<double>(), b.to_number<double>());
  if (a.is_string())
    return b.is_string() &&
           std::string_view(b.get_string().data(), b.get_string().size()) == a.get_ref<const std::string&>();
  if (a.is_array()) {
    if (!b.is_array() || b.get_array().size() != a.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b.get_array()[i])) return false;
    }
    return true;
  }
  if (!b.is_object() || b.get_object().size() != a.size()) return false;
  for (const auto& [key, value] : a.items()) {
    const auto* other = b.get_object().if_contains(key);
    if (other == nullptr || !same(value, *other)) return false;
  }
  return true;
}

// What we refuse and JSON allows: infinities that Boost makes of 1e999, and objects of very many keys.
inline bool within_our_limits(const boost::json::value& value) {
  if (value.is_double()) return std::isfinite(value.get_double());
  if (value.is_array()) {
    for (const auto& item : value.get_array()) {
      if (!within_our_limits(item)) return false;
    }
  }
  if (value.is_object()) {
    for (const auto& item : value.get_object()) {
      if (!within_our_limits(item.value())) return false;
    }
  }
  return true;
}

}  // namespace omnibus::fuzz
