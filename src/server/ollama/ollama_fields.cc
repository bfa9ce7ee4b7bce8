#include "ollama_fields.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "api/field_checks.h"
#include "api/field_rule.h"
#include "keep_alive.h"
#include "ollama_body.h"

namespace omnibus {
namespace {

constexpr unsigned kGenerate = static_cast<unsigned>(OllamaRoute::kGenerate);
constexpr unsigned kChat = static_cast<unsigned>(OllamaRoute::kChat);
constexpr unsigned kBoth = kGenerate | kChat;

// What a table fills in; the options have a table of their own.
struct Body {
  OllamaFields fields;
  std::string name;  // an older spelling of `model`
  Json options;
};

using F = Field<Body>;
using T = FieldType;

Status check_think(std::string_view name, const Json& value) {
  if (value.is_boolean()) return {};
  for (const char* level : {"low", "medium", "high", "max"}) {
    if (value == level) return {};
  }
  return invalid_field(name, fmt::format("Invalid '{}': must be a boolean, or one of low, medium, high, max, "
                                         "got {}",
                                         name, quote_value(value)));
}

void take_think(Body& b, Json& v) {
  b.fields.think = !v.is_boolean() || v.get<bool>();
  if (v.is_string()) b.fields.think_level = v.get<std::string>();
}

F text(std::string_view name, unsigned routes, void (*take)(Body&, Json&)) {
  return {{.name = name, .routes = routes, .type = T::kString}, take};
}

F flag(std::string_view name, unsigned routes, void (*take)(Body&, Json&)) {
  return {{.name = name, .routes = routes, .type = T::kBool}, take};
}

F unsupported(std::string_view name, unsigned routes, std::string_view neutral) {
  return {{.name = name, .routes = routes, .verdict = Verdict::kUnsupported, .neutral = neutral}, nullptr};
}

F model_name(std::string_view name, void (*take)(Body&, Json&)) {
  return {{.name = name, .routes = kBoth, .type = T::kString, .max = kMaxModelName}, take};
}

std::span<const F> field_table() {
  static const std::vector<F> table = {
      model_name("model", [](Body& b, Json& v) { b.fields.model = v.get<std::string>(); }),
      model_name("name", [](Body& b, Json& v) { b.name = v.get<std::string>(); }),
      text("prompt", kGenerate, [](Body& b, Json& v) { b.fields.prompt = v.get<std::string>(); }),
      text("system", kGenerate, [](Body& b, Json& v) { b.fields.system = v.get<std::string>(); }),
      text("template", kBoth, [](Body& b, Json& v) { b.fields.chat_template = v.get<std::string>(); }),
      {{.name = "context", .routes = kGenerate, .type = T::kArray, .max = 1048576, .check = check_token_ids},
       [](Body& b, Json& v) {
         for (const Json& id : v) b.fields.context.push_back(static_cast<TokenId>(integer_of(id)));
       }},
      flag("raw", kGenerate, [](Body& b, Json& v) { b.fields.raw = v.get<bool>(); }),
      {{.name = "messages", .routes = kChat, .type = T::kArray, .max = 16384},
       [](Body& b, Json& v) { b.fields.messages = std::move(v); }},
      {{.name = "think", .routes = kBoth, .check = check_think}, take_think},
      flag("stream", kBoth, [](Body& b, Json& v) { b.fields.stream = v.get<bool>(); }),
      flag("truncate", kBoth, [](Body& b, Json& v) { b.fields.truncate = v.get<bool>(); }),
      flag("logprobs", kBoth, [](Body& b, Json& v) { b.fields.logprobs = v.get<bool>(); }),
      {{.name = "top_logprobs", .routes = kBoth, .type = T::kInteger, .min = 0, .max = 20},
       [](Body& b, Json& v) { b.fields.top_logprobs = static_cast<int32_t>(integer_of(v)); }},
      {{.name = "keep_alive", .routes = kBoth, .check = check_keep_alive},
       [](Body& b, Json& v) { b.fields.keep_alive = parse_keep_alive(v); }},
      {{.name = "options", .routes = kBoth, .type = T::kObject, .max = 128},
       [](Body& b, Json& v) { b.options = std::move(v); }},
      unsupported("format", kBoth, R"("")"),
      unsupported("suffix", kGenerate, R"("")"),
      unsupported("images", kGenerate, "[]"),
      unsupported("tools", kChat, "[]"),
      // The context of a running answer never moves on: it ends with done_reason "length".
      unsupported("shift", kBoth, "false"),
  };
  return table;
}

Status check_together(const OllamaFields& f) {
  if (f.raw && (!f.chat_template.empty() || !f.system.empty() || !f.context.empty())) {
    return invalid_field("raw", "raw mode does not support template, system, or context");
  }
  if (f.top_logprobs > 0 && !f.logprobs) {
    return invalid_field("top_logprobs", "Invalid 'top_logprobs': needs logprobs: true");
  }
  return {};
}

}  // namespace

std::shared_ptr<const BodyFields> ollama_body_fields(OllamaRoute route) {
  return std::make_shared<const BodyFields>(
      BodyFields{rules_on(field_table(), static_cast<unsigned>(route)), {{"options", option_rules()}}});
}

StatusOr<ParsedOllama> parse_ollama_body(const std::string& text, OllamaRoute route, bool strict,
                                         const SamplingDefaults& defaults) {
  OMNIBUS_ASSIGN_OR_RETURN(Json json, parse_ollama_json(text));
  Body body;
  std::vector<std::string> ignored;
  OMNIBUS_RETURN_IF_ERROR(
      take_fields(json, field_table(), FieldOptions{static_cast<unsigned>(route), strict}, body, ignored));
  OllamaFields& fields = body.fields;
  defaults.apply_to(fields.options.sampling);
  if (fields.model.empty()) fields.model = std::move(body.name);
  if (body.options.is_object()) {
    OMNIBUS_RETURN_IF_ERROR(take_options(body.options, strict, fields.options, ignored));
  }
  OMNIBUS_RETURN_IF_ERROR(check_together(fields));
  return ParsedOllama{std::move(fields), std::move(ignored)};
}

}  // namespace omnibus
