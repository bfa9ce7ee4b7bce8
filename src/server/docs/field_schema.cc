#include "field_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace omnibus {
namespace {

constexpr double kExactInteger = 9007199254740992.0;  // 2^53

const char* type_of(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "boolean";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kString:
      return "string";
    case FieldType::kArray:
      return "array";
    case FieldType::kObject:
      return "object";
    case FieldType::kAny:
      return nullptr;
  }
  return nullptr;
}

struct BoundNames {
  const char* min;
  const char* max;
};

BoundNames bound_names(FieldType type) {
  switch (type) {
    case FieldType::kString:
      return {"minLength", "maxLength"};
    case FieldType::kArray:
      return {"minItems", "maxItems"};
    case FieldType::kObject:
      return {"minProperties", "maxProperties"};
    default:
      return {"minimum", "maximum"};
  }
}

// 20, not 20.0.
Json number_json(double value) {
  if (value == std::floor(value) && std::abs(value) <= kExactInteger) return static_cast<int64_t>(value);
  return value;
}

template <typename Visit>
void for_each_word(std::string_view words, const Visit& visit) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    visit(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

Json used_schema(const FieldRule& rule) {
  Json schema = Json::object();
  if (const char* type = type_of(rule.type)) schema["type"] = type;
  const BoundNames names = bound_names(rule.type);
  if (rule.min != -kNoBound) schema[names.min] = number_json(rule.min);
  if (rule.max != kNoBound) schema[names.max] = number_json(rule.max);
  if (rule.type == FieldType::kInteger && rule.min == -kNoBound && rule.max == kNoBound) {
    schema["minimum"] = std::numeric_limits<int64_t>::min();
    schema["maximum"] = std::numeric_limits<int64_t>::max();
    schema["format"] = "int64";
  }
  for_each_word(rule.keys,
                [&](std::string_view key) { schema["properties"][std::string(key)] = Json::object(); });
  return schema;
}

// null is absent, for every field.
void allow_null(Json& schema) {
  const auto type = schema.find("type");
  if (type != schema.end() && type->is_string()) *type = Json::array({*type});
  if (type != schema.end()) type->push_back("null");
  for (const char* choice : {"anyOf", "oneOf"}) {
    const auto it = schema.find(choice);
    if (it != schema.end()) it->push_back({{"type", "null"}});
  }
  const auto values = schema.find("enum");
  if (values != schema.end()) values->push_back(nullptr);
}

Json unsupported_schema(const FieldRule& rule) {
  Json schema;
  Json& values = schema["enum"] = Json::array();
  std::string listed;
  for_each_word(rule.neutral, [&](std::string_view word) {
    values.push_back(Json::parse(word, nullptr, /*allow_exceptions=*/false));
    listed += (listed.empty() ? "" : " or ") + std::string(word);
  });
  schema["description"] = listed.empty() ? "Not supported: any value is an error."
                                         : "Not supported: any value but " + listed + " is an error.";
  schema["x-omnibus"] = "unsupported";
  return schema;
}

Json ignored_schema() {
  Json schema;
  schema["description"] = "Without effect: named in the header x-omnibus-ignored-fields.";
  schema["x-omnibus"] = "ignored";
  return schema;
}

}  // namespace

Json field_schema(const FieldRule& rule, const Json& note) {
  Json schema;
  switch (rule.verdict) {
    case Verdict::kIgnored:
      return ignored_schema();
    case Verdict::kUnsupported:
      schema = unsupported_schema(rule);
      break;
    case Verdict::kUsed:
      schema = used_schema(rule);
      if (note.contains("schema")) schema.update(note["schema"], /*merge_objects=*/true);
      if (note.contains("default")) schema["default"] = note["default"];
      if (note.contains("about")) schema["description"] = note["about"];
      break;
  }
  allow_null(schema);
  return schema;
}

}  // namespace omnibus
