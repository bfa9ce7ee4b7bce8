// FieldRule: what one field of a request may be. Each door has a table per kind of request, which
// declares name, type, bounds, verdict and how the value is taken; validation walks it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

enum class FieldType { kBool, kInteger, kNumber, kString, kArray, kObject, kAny };

// kIgnored: a harmless hint, named in x-omnibus-ignored-fields. kUnsupported: 400 unsupported_parameter,
// unless the value is one of `neutral`, which ask for nothing.
enum class Verdict { kUsed, kIgnored, kUnsupported };

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct FieldRule {
  std::string_view name = {};
  unsigned routes = 0;  // that the field belongs to: a set of bits, each door's own
  FieldType type = FieldType::kAny;
  // Of a number its value, of a string its bytes, of an array or object its items; inclusive.
  double min = -kNoBound;
  double max = kNoBound;
  Verdict verdict = Verdict::kUsed;
  std::string_view neutral = {};  // JSON texts separated by a space, for kUnsupported
  std::string_view keys = {};     // of an object, separated by a space: others are unknown; "": any
  // What the type and bounds cannot say; may be null. Called with a value of the right type.
  Status (*check)(std::string_view name, const Json& value) = nullptr;
};

// OK, or 400 naming the field, with the code of its kind of mistake. `value` is not null.
Status check_field(const FieldRule& rule, const Json& value);

// 400 naming a field that no table has; a long name is cut, in the message and in `param`.
Status unknown_field(const std::string& name);

// An integer, or a float that is one, as int64; `value` has passed kInteger.
int64_t integer_of(const Json& value);

template <typename Target>
struct Field {
  FieldRule rule;
  void (*take)(Target& target, Json& value) = nullptr;  // may move from `value`; null unless kUsed
};

struct FieldOptions {
  unsigned route = 0;
  bool strict = false;
};

// A field that means nothing here: 400 unknown_parameter if `strict`, else named in `ignored`.
Status note_unknown(const std::string& name, bool strict, std::vector<std::string>& ignored);

// note_unknown for each key of `value` (an object) that is not in `rule.keys`; null is absent.
Status note_unknown_keys(const FieldRule& rule, const Json& value, bool strict,
                         std::vector<std::string>& ignored);

// Checks `body` (an object) against the table and takes the values of the fields that are used. null is
// absent. `ignored` gets the names of what had no effect.
template <typename Target>
Status take_fields(Json& body, std::span<const Field<Target>> table, const FieldOptions& options,
                   Target& target, std::vector<std::string>& ignored) {
  for (auto& [name, value] : body.items()) {
    if (value.is_null()) continue;
    const Field<Target>* field = nullptr;
    for (const Field<Target>& candidate : table) {
      if ((candidate.rule.routes & options.route) != 0 && candidate.rule.name == name) field = &candidate;
    }
    if (field == nullptr) {
      OMNIBUS_RETURN_IF_ERROR(note_unknown(name, options.strict, ignored));
      continue;
    }
    OMNIBUS_RETURN_IF_ERROR(check_field(field->rule, value));
    OMNIBUS_RETURN_IF_ERROR(note_unknown_keys(field->rule, value, options.strict, ignored));
    if (field->rule.verdict == Verdict::kIgnored) ignored.push_back(name);
    if (field->take != nullptr) field->take(target, value);
  }
  return {};
}

// The value of x-omnibus-ignored-fields: names made safe for a header, cut at 1 KiB.
std::string ignored_fields_header(const std::vector<std::string>& names);

}  // namespace omnibus
