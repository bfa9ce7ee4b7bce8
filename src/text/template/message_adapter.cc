#include "message_adapter.h"

#include <algorithm>
#include <optional>

#include <absl/strings/ascii.h>
#include <nlohmann/json.hpp>

namespace omnibus::jinja {
namespace {

using Json = nlohmann::ordered_json;

// Words that no template contains.
constexpr const char* kFirst = "zqprobeone";
constexpr const char* kSecond = "zqprobetwo";

// What templates, and clients, call the reasoning of a message.
constexpr const char* kReasoningKeys[] = {"reasoning_content", "reasoning", "thinking"};

bool has(const std::optional<std::string>& text, std::string_view what) {
  return text.has_value() && text->find(what) != std::string::npos;
}

// The rendered text, or nothing when the template fails.
std::optional<std::string> try_render(const Program& program, Json messages, bool tools) {
  Json variables = {{"messages", std::move(messages)}};
  if (tools) {
    variables["tools"] = Json::array(
        {{{"type", "function"},
          {"function",
           {{"name", "zqtool"},
            {"description", "A tool."},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"zqargument", {{"type", "string"}, {"description", "An argument."}}}}},
              {"required", {"zqargument"}}}}}}}});
  }
  RenderOptions options;
  options.add_generation_prompt = false;
  // Small enough that a hostile template is compiled in no time, in steps and bytes rather than seconds: the
  // verdict must not depend on the machine's load.
  options.budget = {.steps = 100'000, .output_bytes = 256 << 10, .depth = 100, .milliseconds = 10'000};
  try {
    return run_program(program, variables, options).text;
  } catch (const TemplateError&) {
    return std::nullopt;
  }
}

Json part(const char* text) { return {{"type", "text"}, {"text", text}}; }

Json tool_conversation(Json arguments, Json content) {
  const Json call = {{"id", "call00001"},
                     {"type", "function"},
                     {"function", {{"name", "zqtool"}, {"arguments", std::move(arguments)}}}};
  return Json::array(
      {{{"role", "user"}, {"content", "Hi"}},
       {{"role", "assistant"}, {"content", std::move(content)}, {"tool_calls", Json::array({call})}}});
}

void probe_content(const Program& program, TemplateShape& shape) {
  const auto plain = try_render(program, Json::array({{{"role", "user"}, {"content", kFirst}}}), false);
  const auto parts = try_render(
      program, Json::array({{{"role", "user"}, {"content", Json::array({part(kFirst), part(kSecond)})}}}),
      false);
  // A template that prints the list shows both words too, inside Python's or JSON's notation.
  const bool printed = has(parts, std::string("'") + kFirst) || has(parts, std::string("\"") + kFirst);
  shape.part_content = has(parts, kFirst) && has(parts, kSecond) && !printed;
  shape.string_content = has(plain, kFirst) || !shape.part_content;
}

void probe_tools(const Program& program, TemplateShape& shape) {
  const Json object = {{"zqargument", kFirst}};
  const std::string text = object.dump();
  const auto as_object = try_render(program, tool_conversation(object, ""), true);
  const auto as_text = try_render(program, tool_conversation(text, ""), true);
  // Printed with str() an object shows Python's quotes; a text given to tojson shows escaped ones.
  const bool object_works = has(as_object, kFirst) && !has(as_object, "'zqargument'");
  const bool text_works = has(as_text, kFirst) && !has(as_text, "\\\"zqargument");
  shape.object_arguments = object_works || !text_works;
  const Json arguments = shape.object_arguments ? object : Json(text);
  const auto empty = shape.object_arguments ? as_object : as_text;
  const auto null = try_render(program, tool_conversation(arguments, nullptr), true);
  const bool prints_none = has(null, "None") && !has(empty, "None");
  shape.null_content = !empty.has_value() || (null.has_value() && !prints_none);
}

// Found in the source and not by rendering: many templates show the reasoning of some turns only.
void find_reasoning_keys(std::string_view source, TemplateShape& shape) {
  const auto is_word = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (const std::string key : kReasoningKeys) {
    for (size_t at = source.find(key); at != std::string_view::npos; at = source.find(key, at + 1)) {
      const char before = at == 0 ? ' ' : source[at - 1];
      const char after = at + key.size() < source.size() ? source[at + key.size()] : ' ';
      const bool quoted = (before == '\'' || before == '"') && after == before;
      if (!quoted && (before != '.' || is_word(after))) continue;
      shape.reasoning_keys.push_back(key);
      break;
    }
  }
}

// The reasoning of a message under whichever key it came; nullptr when it has none.
const Json* reasoning_of(const Json& message) {
  for (const char* key : kReasoningKeys) {
    const auto it = message.find(key);
    if (it != message.end() && it->is_string() && !it->get_ref<const std::string&>().empty()) return &*it;
  }
  return nullptr;
}

bool reasoning_fits(const TemplateShape& shape, const Json& message) {
  const Json* reasoning = reasoning_of(message);
  return reasoning == nullptr ||
         std::all_of(shape.reasoning_keys.begin(), shape.reasoning_keys.end(), [&](const std::string& key) {
           const auto it = message.find(key);
           return it != message.end() && it->is_string() && !it->get_ref<const std::string&>().empty();
         });
}

bool is_array_of_messages(const Json& variables) {
  const auto messages = variables.find("messages");
  return messages != variables.end() && messages->is_array();
}

bool is_call_list(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

// The "arguments" of a call in either of the two forms in use; nullptr when there are none.
const Json* arguments_of(const Json& call) {
  if (!call.is_object()) return nullptr;
  const auto function = call.find("function");
  const Json& owner = function != call.end() && function->is_object() ? *function : call;
  const auto arguments = owner.find("arguments");
  return arguments == owner.end() ? nullptr : &*arguments;
}

bool message_fits(const TemplateShape& shape, const Json& message) {
  if (!message.is_object()) return true;
  if (!reasoning_fits(shape, message)) return false;
  const auto content = message.find("content");
  if (content != message.end()) {
    if (content->is_array() && !shape.part_content) return false;
    if (content->is_string() && !shape.string_content) return false;
    if (content->is_null() && !shape.null_content && is_call_list(message)) return false;
  }
  if (!is_call_list(message)) return true;
  for (const Json& call : message["tool_calls"]) {
    const Json* arguments = arguments_of(call);
    if (arguments != nullptr && arguments->is_string() == shape.object_arguments) return false;
  }
  return true;
}

StatusOr<std::string> join_parts(const Json& parts, const std::string& place) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Json& item = parts[i];
    const std::string here = place + "[" + std::to_string(i) + "]";
    const auto written = item.is_object() ? item.find("text") : item.end();
    if (item.is_string()) {
      text += item.get<std::string>();
    } else if (item.is_object() && written != item.end() && written->is_string()) {
      text += written->get<std::string>();
    } else {
      return invalid_field(here, "only text parts are possible: the model's chat template takes plain text");
    }
  }
  return text;
}

void adapt_calls(const TemplateShape& shape, Json& message) {
  if (!is_call_list(message)) return;
  for (Json& call : message["tool_calls"]) {
    auto* arguments = const_cast<Json*>(arguments_of(call));
    if (arguments == nullptr) continue;
    if (shape.object_arguments && arguments->is_string()) {
      // A model may have written anything; what is no JSON object stays the text that it is.
      Json parsed = Json::parse(arguments->get_ref<const std::string&>(), nullptr, false);
      if (parsed.is_object()) *arguments = std::move(parsed);
    } else if (!shape.object_arguments && !arguments->is_string()) {
      *arguments = arguments->dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
}

Status adapt_message(const TemplateShape& shape, Json& message, const std::string& place) {
  if (!message.is_object()) return {};
  const auto content = message.find("content");
  if (content != message.end()) {
    if (content->is_array() && !shape.part_content) {
      OMNIBUS_ASSIGN_OR_RETURN(*content, join_parts(*content, place + ".content"));
    } else if (content->is_string() && !shape.string_content) {
      *content = Json::array({{{"type", "text"}, {"text", content->get<std::string>()}}});
    } else if (content->is_null() && !shape.null_content && is_call_list(message)) {
      *content = "";
    }
  }
  if (!reasoning_fits(shape, message)) {
    const Json reasoning = *reasoning_of(message);
    for (const std::string& key : shape.reasoning_keys) message[key] = reasoning;
  }
  adapt_calls(shape, message);
  return {};
}

}  // namespace

TemplateShape probe_shape(const Program& program, std::string_view source) {
  TemplateShape shape;
  probe_content(program, shape);
  probe_tools(program, shape);
  find_reasoning_keys(source, shape);
  return shape;
}

bool messages_fit(const TemplateShape& shape, const Json& variables) {
  if (!is_array_of_messages(variables)) return true;
  for (const Json& message : variables["messages"])
    if (!message_fits(shape, message)) return false;
  return true;
}

StatusOr<Json> adapt_messages(const TemplateShape& shape, const Json& variables) {
  Json adapted = variables;
  if (!is_array_of_messages(adapted)) return adapted;
  Json& messages = adapted["messages"];
  for (size_t i = 0; i < messages.size(); ++i)
    OMNIBUS_RETURN_IF_ERROR(adapt_message(shape, messages[i], "messages[" + std::to_string(i) + "]"));
  return adapted;
}

}  // namespace omnibus::jinja
