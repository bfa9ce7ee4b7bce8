#include "ollama_body.h"

#include <span>

#include <fmt/format.h>

namespace omnibus {
namespace {

using F = Field<ModelBody>;
constexpr unsigned kShow = static_cast<unsigned>(ModelRoute::kShow);
constexpr unsigned kDelete = static_cast<unsigned>(ModelRoute::kDelete);
constexpr unsigned kCopy = static_cast<unsigned>(ModelRoute::kCopy);

F name(std::string_view field, unsigned routes, void (*take)(ModelBody&, Json&)) {
  return {{.name = field, .routes = routes, .type = FieldType::kString, .max = kMaxModelName}, take};
}

void take_model(ModelBody& body, Json& value) {
  if (body.model.empty()) body.model = value.get<std::string>();
}

std::span<const F> model_table() {
  static const std::vector<F> table = {
      name("model", kShow | kDelete, take_model),
      name("name", kShow | kDelete, take_model),
      name("source", kCopy, [](ModelBody& b, Json& v) { b.source = v.get<std::string>(); }),
      name("destination", kCopy, [](ModelBody& b, Json& v) { b.destination = v.get<std::string>(); }),
      {{.name = "verbose", .routes = kShow, .type = FieldType::kBool},
       [](ModelBody& b, Json& v) { b.verbose = v.get<bool>(); }}};
  return table;
}

Status require(const char* field, const std::string& value) {
  if (!value.empty()) return {};
  return invalid_field(field, fmt::format("{} is required", field), "missing_required_parameter");
}

}  // namespace

std::shared_ptr<const BodyFields> model_body_fields(ModelRoute route) {
  return body_fields(model_table(), static_cast<unsigned>(route));
}

StatusOr<Json> parse_ollama_json(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return absl::InvalidArgumentError("missing request body");
  }
  OMNIBUS_ASSIGN_OR_RETURN(Json body, parse_json(text));
  if (!body.is_object()) return absl::InvalidArgumentError("The body must be a JSON object");
  return body;
}

StatusOr<ModelBody> parse_model_body(const std::string& text, ModelRoute route, bool strict) {
  OMNIBUS_ASSIGN_OR_RETURN(Json json, parse_ollama_json(text));
  ModelBody body;
  OMNIBUS_RETURN_IF_ERROR(take_fields(json, model_table(), FieldOptions{static_cast<unsigned>(route), strict},
                                      body, body.ignored));
  if (route != ModelRoute::kCopy) {
    OMNIBUS_RETURN_IF_ERROR(require("model", body.model));
    return body;
  }
  OMNIBUS_RETURN_IF_ERROR(require("source", body.source));
  OMNIBUS_RETURN_IF_ERROR(require("destination", body.destination));
  return body;
}

}  // namespace omnibus
