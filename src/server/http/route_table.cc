#include "omnibus/server/http/route_table.h"

#include <utility>

namespace omnibus {
namespace {

constexpr std::string_view kTail = "{id}";

// Whether `path` is one of `pattern`; `parameter` views what stands for {id}.
bool matches(std::string_view pattern, std::string_view path, std::string_view& parameter) {
  parameter = {};
  if (!pattern.ends_with(kTail)) return pattern == path;
  pattern.remove_suffix(kTail.size());
  if (path.size() <= pattern.size() || !path.starts_with(pattern)) return false;
  parameter = path.substr(pattern.size());
  return true;
}

}  // namespace

void RouteTable::add(Route route) { routes_.push_back(std::move(route)); }

RouteTable::Match RouteTable::find(std::string_view method, std::string_view path) const {
  Match match;
  bool is_get = false;
  for (const Route& route : routes_) {
    std::string_view parameter;
    if (!matches(route.pattern, path, parameter)) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      match.route = &route;
      match.parameter = parameter;
    }
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method;
    is_get = is_get || route.method == "GET";
  }
  if (is_get) match.allow += ", HEAD";
  if (!match.allow.empty()) match.allow += ", OPTIONS";
  return match;
}

}  // namespace omnibus
