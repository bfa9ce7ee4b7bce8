// Chat templates from strangers: compile and render any bytes within the budget. Input: the template, or
// after a line "\n====\n" a JSON object of variables.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "omnibus/text/template/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

const Json& default_variables() {
  static const Json variables = Json::parse(R"JSON({
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "<|im_end|> ü 😀"},
                 {"role": "assistant", "content": "", "tool_calls": [{"id": "abc123def", "type": "function",
                  "function": {"name": "f", "arguments": {"a": [1, 2.5, null, true, "x"]}}}]},
                 {"role": "tool", "content": "{}", "tool_call_id": "abc123def"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "s": "Text", "n": 7, "f": 2.5, "l": [3, 1, 2], "d": {"a": 1, "b": [1]}})JSON");
  return variables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view source(reinterpret_cast<const char*>(data), size);
  Json variables = default_variables();
  if (const size_t cut = source.find("\n====\n"); cut != std::string_view::npos) {
    const Json given = Json::parse(source.substr(cut + 6), nullptr, false);
    if (given.is_object()) variables = given;
    source = source.substr(0, cut);
  }
  const auto compiled = omnibus::ChatTemplate::compile(source);
  if (!compiled.ok()) return 0;
  omnibus::RenderOptions options;
  options.budget = {.steps = 20'000, .output_bytes = 64 << 10, .depth = 50, .milliseconds = 1000};
  const auto prompt = (*compiled)->render(variables, options);
  if (prompt.ok()) {
    size_t end = 0;
    for (const auto& range : prompt->ranges) {
      if (range.begin != end || range.end <= range.begin) __builtin_trap();
      end = range.end;
    }
    if (end != prompt->text.size() || end > (64u << 10)) __builtin_trap();
  }
  return 0;
}
