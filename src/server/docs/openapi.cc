#include "openapi.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/body_fields.h"
#include "field_schema.h"
#include "notes.h"

namespace omnibus {
namespace {

constexpr const char* kJsonMedia = "application/json";

constexpr const char* kEventMedia = "text/event-stream";

Json schema_ref(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

std::string text_of(const Json& note, const char* key, std::string fallback = {}) {
  const auto it = note.find(key);
  return it != note.end() && it->is_string() ? it->get<std::string>() : std::move(fallback);
}

// "POST /v1/chat/completions" -> "post_v1_chat_completions"
std::string operation_id(const Route& route) {
  std::string id;
  for (const char c : route.method + route.pattern) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) {
      id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!id.empty() && id.back() != '_') {
      id += '_';
    }
  }
  return id.ends_with('_') ? id.substr(0, id.size() - 1) : id;
}

bool needs_key(const DocsConfig& config, Scope scope) {
  if (scope == Scope::kMetrics) return config.keyed && !config.loopback_bind;
  return config.keyed && scope != Scope::kPublic;
}

// An example's "{model}" is the model of this server.
Json with_model(Json example, const std::string& model) {
  for (auto& [key, value] : example.items()) {
    if (value == "{model}") value = model;
  }
  return example;
}

// One server-sent event, the way OpenAPI 3.2 describes them: `data` is a text, which is JSON of that
// shape, or the text that ends a stream.
Json event_schema(const Json& shape, const std::string& end) {
  Json data = {{"type", "string"}, {"contentMediaType", kJsonMedia}, {"contentSchema", shape}};
  if (!end.empty()) data = {{"anyOf", Json::array({{{"const", end}}, std::move(data)})}};
  return {{"type", "object"}, {"required", Json::array({"data"})}, {"properties", {{"data", data}}}};
}

class Writer {
 public:
  Writer(const DocsConfig& config, const RouteTable& routes) : config_(config), routes_(routes) {}

  Json document();

 private:
  void add_operation(const Route& route);
  Json responses(const Route& route, const DocNotes::RouteNote& note) const;
  Json answer(const Json& described) const;
  Json error(int status, const std::string& schema) const;
  Json request_body(const Route& route, const DocNotes::RouteNote& note);
  Json body_schema(const Route& route, const DocNotes::RouteNote& note) const;

  const DocsConfig& config_;
  const RouteTable& routes_;
  const DocNotes& notes_ = DocNotes::all();
  Json paths_ = Json::object();
  Json schemas_ = notes_.schemas();
  std::vector<std::string> groups_;
};

const char* error_about(int status) {
  switch (status) {
    case 400:
      return "The request is wrong; the message names the field and what it may be.";
    case 401:
      return "No key, or a wrong one.";
    case 403:
      return "A key that may not do this, or a page of another site.";
    case 404:
      return "There is no such thing; for a model, the code is model_not_found.";
    case 408:
      return "The body did not come in time.";
    case 409:
      return "The model is being served.";
    case 413:
      return "The body is larger than this route takes.";
    case 415:
      return "The body is compressed.";
    case 429:
      return "The queue is full; Retry-After says when to come back.";
    case 501:
      return "Known, and not built.";
    case 503:
      return "The server is starting, draining or out of memory for bodies; Retry-After says when to come "
             "back.";
    default:
      return "The server failed on this request.";
  }
}

Json Writer::error(int status, const std::string& schema) const {
  Json response;
  response["description"] = error_about(status);
  if (!schema.empty()) response["content"][kJsonMedia]["schema"] = schema_ref(schema);
  return response;
}

// {status?, media?, schema?, about?} as a response; of a stream, `schema` is the shape of one item.
Json Writer::answer(const Json& described) const {
  Json response;
  response["description"] = text_of(described, "about", "The answer.");
  const std::string media = text_of(described, "media", kJsonMedia);
  if (media.empty()) return response;
  Json& content = response["content"][media];
  content = Json::object();
  const auto schema = described.find("schema");
  const Json shape = schema == described.end() ? Json{{"type", "string"}}
                     : schema->is_string()     ? schema_ref(schema->get<std::string>())
                                               : *schema;
  if (media == kJsonMedia || schema == described.end()) {
    content["schema"] = shape;
  } else {
    content["schema"] =
        media == kEventMedia ? event_schema(shape, text_of(described, "end")) : Json{{"type", "string"}};
    content["x-item-schema"] = shape;
  }
  return response;
}

Json Writer::responses(const Route& route, const DocNotes::RouteNote& note) const {
  Json out = Json::object();
  const Json& words = *note.route;
  for (const Json& described : words.value("answers", Json::array())) {
    const std::string status = std::to_string(described.value("status", 200));
    Json response = answer(described);
    if (!out.contains(status)) {
      out[status] = std::move(response);
      continue;
    }
    // Another media type of the same answer.
    out[status]["content"].update(response["content"]);
    out[status]["description"] =
        out[status]["description"].get<std::string>() + " " + response["description"].get<std::string>();
  }
  std::vector<int> statuses = {400, 500};
  if (needs_key(config_, route.scope)) statuses.push_back(401);
  if (route.scope != Scope::kPublic) statuses.push_back(403);
  if (route.method == "POST") statuses.insert(statuses.end(), {408, 413, 503});
  for (const Json& status : words.value("errors", Json::array())) statuses.push_back(status.get<int>());
  std::sort(statuses.begin(), statuses.end());
  // An answer to HEAD has no body.
  const std::string schema = route.method == "HEAD" ? "" : text_of(*note.door, "errors", "Error");
  for (const int status : statuses) {
    if (!out.contains(std::to_string(status))) out[std::to_string(status)] = error(status, schema);
  }
  return out;
}

Json Writer::body_schema(const Route& route, const DocNotes::RouteNote& note) const {
  // `schema` is filled at the end: inserting into an ordered_json moves what it holds.
  Json properties = Json::object();
  for (const FieldRule& rule : route.body->rules) {
    properties[std::string(rule.name)] = field_schema(rule, notes_.find_field(note, rule.name));
  }
  for (const auto& [name, rules] : route.body->nested) {
    Json& inner = properties[std::string(name)]["properties"] = Json::object();
    for (const FieldRule& rule : rules) {
      inner[std::string(rule.name)] =
          field_schema(rule, notes_.find_field(note, fmt::format("{}.{}", name, rule.name)));
    }
  }
  Json schema = {{"type", "object"}};
  schema["properties"] = std::move(properties);
  if (note.route->contains("required")) schema["required"] = (*note.route)["required"];
  return schema;
}

Json Writer::request_body(const Route& route, const DocNotes::RouteNote& note) {
  const Json& words = *note.route;
  const Json given = words.value("body", Json::object());
  Json schema = route.body != nullptr ? body_schema(route, note) : Json::object();
  if (given.contains("schema")) schema.update(given["schema"], /*merge_objects=*/true);
  if (schema.empty()) return nullptr;
  const std::string name = operation_id(route) + "_body";
  schemas_[name] = std::move(schema);
  Json body;
  body["required"] = true;
  Json& content = body["content"][text_of(given, "media", kJsonMedia)];
  content["schema"] = schema_ref(name);
  if (words.contains("example")) content["example"] = with_model(words["example"], config_.model);
  return body;
}

void Writer::add_operation(const Route& route) {
  static const Json kNothing = Json::object();
  DocNotes::RouteNote note = notes_.find_route(route.method, route.pattern);
  if (note.route == nullptr) note.route = &kNothing;
  const Json& words = *note.route;
  const std::string group = text_of(words, "group", text_of(*note.door, "group"));
  if (std::find(groups_.begin(), groups_.end(), group) == groups_.end()) groups_.push_back(group);

  Json operation;
  operation["tags"] = Json::array({group});
  operation["summary"] = text_of(words, "summary");
  if (const std::string about = text_of(words, "about"); !about.empty()) operation["description"] = about;
  operation["operationId"] = operation_id(route);
  operation["security"] = Json::array();
  if (needs_key(config_, route.scope)) {
    operation["security"].push_back({{"bearer", Json::array()}});
    operation["security"].push_back({{"api_key", Json::array()}});
  }
  if (route.pattern.ends_with("{id}")) {
    Json id = {{"name", "id"},
               {"in", "path"},
               {"required", true},
               {"schema", {{"type", "string"}, {"minLength", 1}}}};
    if (words.contains("id")) id["description"] = words["id"];
    operation["parameters"] = Json::array({id});
  }
  if (Json body = request_body(route, note); !body.is_null()) operation["requestBody"] = std::move(body);
  operation["responses"] = responses(route, note);
  std::string method = route.method;
  std::transform(method.begin(), method.end(), method.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  paths_[route.pattern][method] = std::move(operation);
}

Json Writer::document() {
  for (const Route& route : routes_.routes()) {
    if (route.scope != Scope::kAdmin) add_operation(route);
  }
  Json out;
  out["openapi"] = "3.1.0";
  out["info"] = {{"title", "omnibus"},
                 {"version", config_.version},
                 {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}};
  out["info"]["description"] = notes_.about();
  out["servers"] = Json::array({{{"url", "/"}}});
  out["tags"] = Json::array();
  for (const std::string& group : groups_) out["tags"].push_back({{"name", group}});
  out["paths"] = std::move(paths_);
  out["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  out["components"]["securitySchemes"]["api_key"] = {
      {"type", "apiKey"}, {"in", "header"}, {"name", "X-Api-Key"}};
  out["components"]["schemas"] = std::move(schemas_);
  return out;
}

}  // namespace

Json make_openapi(const DocsConfig& config, const RouteTable& routes) {
  return Writer(config, routes).document();
}

}  // namespace omnibus
