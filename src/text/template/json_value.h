// JSON to values and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "value.h"

namespace omnibus::jinja {

// All of it untrusted: a client wrote it.
Value value_from_json(const nlohmann::ordered_json& json, Heap& heap);
// The same, except that messages[i].role is trusted when it is one of the known roles: templates build
// control tokens from it.
Value messages_from_json(const nlohmann::ordered_json& json, Heap& heap);
// json.loads(text); a message naming the place on error.
Value value_from_json_text(const Text& text, Heap& heap);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;  // indent given
  TextPtr indent;       // one level, when pretty
  TextPtr item_separator, key_separator;
};
// json.dumps(value). Strings keep provenance; everything that the engine adds is untrusted.
TextPtr value_to_json(const Value& value, const JsonStyle& style, Heap& heap);

}  // namespace omnibus::jinja
