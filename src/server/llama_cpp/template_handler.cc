// POST /apply-template: a conversation as the text that the model would see; nothing runs.
#include <optional>

#include "omnibus/server/llama_cpp/llama_cpp_api.h"

#include "api/body_fields.h"
#include "api/field_checks.h"
#include "api/json_response.h"
#include "api/messages.h"
#include "api/prompt.h"
#include "api/request_body.h"
#include "handlers.h"

namespace omnibus {
namespace {

struct TemplateFields {
  std::string model;
  Json messages, tools, kwargs;
  std::string reasoning_effort;
  std::optional<bool> add_generation_prompt, continue_final_message;
};

using F = TemplateFields;

Status check_tools(std::string_view name, const Json& value) {
  for (const Json& tool : value) {
    if (!tool.is_object()) {
      return invalid_field(name, "Invalid 'tools': must be an array of objects, got " + quote_value(tool),
                           "invalid_type");
    }
  }
  return {};
}

std::span<const Field<F>> template_field_table() {
  static const std::vector<Field<F>> table = {
      {{.name = "model", .routes = 1, .type = FieldType::kString, .min = 1, .max = 256},
       [](F& f, Json& v) { f.model = v.get<std::string>(); }},
      {{.name = "messages", .routes = 1, .type = FieldType::kArray, .min = 1, .max = 16384},
       [](F& f, Json& v) { f.messages = std::move(v); }},
      {{.name = "tools", .routes = 1, .type = FieldType::kArray, .max = 1024, .check = check_tools},
       [](F& f, Json& v) { f.tools = std::move(v); }},
      {{.name = "chat_template_kwargs",
        .routes = 1,
        .type = FieldType::kObject,
        .max = 64,
        .check = check_template_kwargs},
       [](F& f, Json& v) { f.kwargs = std::move(v); }},
      {{.name = "reasoning_effort", .routes = 1, .type = FieldType::kString, .check = check_reasoning_effort},
       [](F& f, Json& v) { f.reasoning_effort = v.get<std::string>(); }},
      {{.name = "add_generation_prompt", .routes = 1, .type = FieldType::kBool},
       [](F& f, Json& v) { f.add_generation_prompt = v.get<bool>(); }},
      {{.name = "continue_final_message", .routes = 1, .type = FieldType::kBool},
       [](F& f, Json& v) { f.continue_final_message = v.get<bool>(); }},
  };
  return table;
}

StatusOr<HttpResponse> apply_template(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedBody<F> parsed, parse_body(request, template_field_table(),
                                                            FieldOptions{1, context.config.strict_fields}));
  F& f = parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(context.check_model(f.model));
  if (f.messages.is_null()) {
    return invalid_field("messages", "Missing required parameter: 'messages'", "missing_required_parameter");
  }
  OMNIBUS_RETURN_IF_ERROR(normalize_messages(f.messages, context.config.strict_fields, parsed.ignored));
  ChatPromptInput input;
  input.messages = std::move(f.messages);
  input.kwargs = std::move(f.kwargs);
  if (!f.tools.empty()) input.kwargs["tools"] = std::move(f.tools);
  input.reasoning_effort = f.reasoning_effort;
  OMNIBUS_RETURN_IF_ERROR(resolve_ending(context, f.add_generation_prompt, f.continue_final_message, input));
  OMNIBUS_ASSIGN_OR_RETURN(RenderedPrompt rendered, render_chat(context, std::move(input), parsed.ignored));
  Json body;
  body["prompt"] = std::move(rendered.text);
  return json_response(body, parsed.ignored);
}

}  // namespace

std::shared_ptr<const BodyFields> template_body_fields() { return body_fields(template_field_table(), 1); }

HttpResponse handle_apply_template(const ApiContext& context, const HttpRequest& request) {
  auto response = apply_template(context, request);
  return response.ok() ? *std::move(response) : render_llama_cpp_error(response.status(), request.path);
}

}  // namespace omnibus
