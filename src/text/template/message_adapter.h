// What a template can take, found out once by rendering probes, and messages rewritten to that form:
// templates in the wild expect different shapes of the same OpenAI messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "omnibus/base/common/status.h"

#include "program.h"

namespace omnibus::jinja {

struct TemplateShape {
  bool string_content = true;    // prints content that is one string
  bool part_content = false;     // walks content that is a list of {"type": "text", "text": …}
  bool object_arguments = true;  // takes tool-call arguments as an object; else as JSON text
  bool null_content = true;      // takes content null beside tool calls; else it wants ""
  // The keys under which it looks for an assistant's earlier reasoning; those of reasoning_keys().
  std::vector<std::string> reasoning_keys;
};

// `source` is the program's.
TemplateShape probe_shape(const Program& program, std::string_view source);

// `variables` with messages in the form that `shape` takes. INVALID_ARGUMENT names the message and the part
// that has no such form (a content part that is not text).
StatusOr<nlohmann::ordered_json> adapt_messages(const TemplateShape& shape,
                                                const nlohmann::ordered_json& variables);
// True when adapt_messages would change nothing; saves the copy.
bool messages_fit(const TemplateShape& shape, const nlohmann::ordered_json& variables);

}  // namespace omnibus::jinja
