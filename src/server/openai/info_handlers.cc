// GET routes that look things up: models, health, version, metrics, the front page.
#include <algorithm>

#include <fmt/chrono.h>

#include "omnibus/server/http/json_body.h"
#include "omnibus/server/ui/chat_page.h"

#include "api/json_response.h"
#include "handlers.h"

namespace omnibus {
namespace {

Json model_json(const ApiContext& context, const std::string& name) {
  Json model;
  model["id"] = name;
  model["object"] = "model";
  model["created"] = context.created;
  model["owned_by"] = "omnibus";
  model["root"] = context.config.model_names.front();
  model["parent"] = nullptr;
  model["max_model_len"] = context.max_model_len();
  if (context.config.parameters > 0) {
    model["meta"]["n_vocab"] = context.tokenizer().vocab_size();
    model["meta"]["n_params"] = context.config.parameters;
    model["meta"]["size"] = context.config.file_bytes;
  }
  return model;
}

// Anthropic's clients say so, and expect another shape.
bool is_for_anthropic(const HttpRequest& request) { return !request.header("anthropic-version").empty(); }

Json anthropic_model_json(const ApiContext& context, const std::string& name) {
  Json model;
  model["type"] = "model";
  model["id"] = name;
  model["display_name"] = name;
  model["created_at"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(context.created));
  return model;
}

Json any_model_json(const ApiContext& context, const HttpRequest& request, const std::string& name) {
  return is_for_anthropic(request) ? anthropic_model_json(context, name) : model_json(context, name);
}

}  // namespace

HttpResponse handle_models(const ApiContext& context, const HttpRequest& request) {
  Json body;
  if (!is_for_anthropic(request)) body["object"] = "list";
  Json data = Json::array();
  for (const std::string& name : context.config.model_names) {
    data.push_back(any_model_json(context, request, name));
  }
  body["data"] = std::move(data);
  if (!is_for_anthropic(request)) return json_response(body);
  body["has_more"] = false;
  body["first_id"] = context.config.model_names.front();
  body["last_id"] = context.config.model_names.back();
  return json_response(body);
}

HttpResponse handle_model(const ApiContext& context, const HttpRequest& request) {
  const std::string& name = request.path_parameter;
  const auto& names = context.config.model_names;
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return render_openai_error(context.model_not_found(name), {});
  }
  return json_response(any_model_json(context, request, name));
}

HttpResponse handle_version(const ApiContext& context) {
  Json body;
  body["version"] = context.config.version;
  return json_response(body);
}

HttpResponse handle_root(const HttpRequest& request) {
  HttpResponse response;
  const bool browser =
      request.method != "HEAD" && request.header("accept").find("text/html") != std::string_view::npos;
  if (!browser) {
    response.content_type = "text/plain; charset=utf-8";
    response.body = "Ollama is running";
    return response;
  }
  response.content_type = "text/html; charset=utf-8";
  response.headers = {{"Content-Security-Policy", std::string(chat_page_policy())},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Frame-Options", "DENY"},
                      {"Cache-Control", "no-cache"}};
  response.body = chat_page_html();
  return response;
}

}  // namespace omnibus
