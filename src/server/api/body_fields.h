// BodyFields: the rules of one route's JSON body, kept with the route for those who describe it
// (server/docs).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "field_rule.h"

namespace omnibus {

struct BodyFields {
  std::vector<FieldRule> rules;
  // The rules of objects within the body that have a table of their own, by the field's name.
  std::vector<std::pair<std::string_view, std::vector<FieldRule>>> nested;
};

template <typename Target>
std::vector<FieldRule> rules_on(std::span<const Field<Target>> table, unsigned route) {
  std::vector<FieldRule> rules;
  for (const Field<Target>& field : table) {
    if ((field.rule.routes & route) != 0) rules.push_back(field.rule);
  }
  return rules;
}

template <typename Target>
std::shared_ptr<const BodyFields> body_fields(std::span<const Field<Target>> table, unsigned route) {
  return std::make_shared<const BodyFields>(BodyFields{rules_on(table, route), {}});
}

}  // namespace omnibus
