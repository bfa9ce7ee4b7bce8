// JSON Schema of a field, from the rule that checks it and the note that explains it.
#pragma once

#include "omnibus/server/http/json_body.h"

#include "api/field_rule.h"

namespace omnibus {

// `note`: {about, default?, schema?} or {}. null is a value of every field and means that it is absent.
// "x-omnibus" says "ignored" or "unsupported" where the rule does.
Json field_schema(const FieldRule& rule, const Json& note);

}  // namespace omnibus
