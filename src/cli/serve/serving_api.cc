#include "serving_api.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "omnibus/server/admin/probe_routes.h"
#include "omnibus/server/docs/docs_routes.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/server/llama_cpp/llama_cpp_api.h"
#include "omnibus/server/openai/openai_api.h"
#include "omnibus/store/model_store/model_store.h"

#include "version.h"

namespace omnibus {
namespace {

OllamaConfig ollama_config(const ServedModel& model) {
  OllamaConfig config;
  config.store_home = ModelStore::default_home(process_environment()).value_or("");
  config.model_path = model.path;
  config.model_digest = model.digest;
  return config;
}

ReasoningField reasoning_field_of(ReasoningFieldOption option) {
  switch (option) {
    case ReasoningFieldOption::kReasoningContent:
      return ReasoningField::kReasoningContent;
    case ReasoningFieldOption::kReasoning:
      return ReasoningField::kReasoning;
    default:
      return ReasoningField::kBoth;
  }
}

StatusOr<Json> template_kwargs(const std::string& text) {
  if (text.empty()) return Json();
  auto kwargs = parse_json(text);
  if (kwargs.ok() && kwargs->is_object()) return kwargs;
  return absl::InvalidArgumentError(
      fmt::format("--default-chat-template-kwargs: {}",
                  kwargs.ok() ? "must be a JSON object" : status_message(kwargs.status())));
}

// No request could ask for another: JSON is UTF-8.
Status check_served_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string shown = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (Json::parse(shown) == name) continue;
    return absl::InvalidArgumentError(fmt::format("--served-model-name: {} is not UTF-8", shown));
  }
  return {};
}

StatusOr<ApiConfig> api_config(const ServeConfig& config, const ServedModel& model) {
  ApiConfig api;
  OMNIBUS_RETURN_IF_ERROR(check_served_names(config.served_model_names));
  OMNIBUS_ASSIGN_OR_RETURN(api.default_template_kwargs, template_kwargs(config.default_chat_template_kwargs));
  OMNIBUS_ASSIGN_OR_RETURN(api.dialect, dialect_of(config.reasoning_parser, model));
  api.default_max_tokens = config.default_max_tokens.value_or(0);
  api.slots = config.slots;
  api.model_file = std::filesystem::path(model.path).filename().string();
  api.model_names = config.served_model_names;
  if (api.model_names.empty()) api.model_names = {model.name};
  api.any_model = config.any_model;
  api.strict_fields = config.strict_fields;
  api.trust_request_chat_template = config.trust_request_chat_template;
  api.prefill_assistant = config.prefill_assistant;
  api.reasoning_parser = config.reasoning_parser;
  api.reasoning_field = reasoning_field_of(config.reasoning_field);
  api.max_logprobs = config.engine.max_logprobs;
  if (config.generation_config == GenerationConfigOption::kAuto) api.defaults = model.defaults;
  api.text_threads = text_threads();
  api.seed = config.engine.seed;
  api.version = version();
  api.fingerprint = std::string("fp_omnibus_") + version();
  api.parameters = model.parameters;
  api.file_bytes = model.file_bytes;
  return api;
}

}  // namespace

int text_threads() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 8); }

Status check_api_options(const ServeConfig& config) {
  OMNIBUS_RETURN_IF_ERROR(check_served_names(config.served_model_names));
  return template_kwargs(config.default_chat_template_kwargs).status();
}

ServingApi::ServingApi(const ServedModel& model, AsyncEngine& engine, const Lifecycle& lifecycle,
                       MetricsRegistry& metrics, MetricsPage& metrics_page)
    : model_(model),
      engine_(engine),
      lifecycle_(lifecycle),
      metrics_(metrics),
      metrics_page_(metrics_page),
      ollama_models_(make_ollama_models(ollama_config(model))) {}

StatusOr<ServingApi::Version> ServingApi::make(const ServeConfig& config) const {
  OMNIBUS_ASSIGN_OR_RETURN(ApiConfig api, api_config(config, model_));
  const DocsConfig docs{.version = api.version,
                        .model = api.model_names.front(),
                        .keyed = !config.keys.empty(),
                        .loopback_bind = is_loopback_host(config.http.host)};
  Version version;
  version.core = core_ ? core_->with_config(std::move(api))
                       : ApiCore::create(std::move(api), &engine_, model_.chat_template, &metrics_);
  auto routes = std::make_shared<RouteTable>();
  add_openai_routes(*version.core, *routes);
  add_llama_cpp_routes(*version.core, *routes);
  add_ollama_routes(*version.core, ollama_models_, *routes);
  add_probe_routes(lifecycle_, *routes);
  add_metrics_route(metrics_page_, *routes);
  add_docs_routes(docs, *routes);
  version.routes = std::move(routes);
  if (config.http.grpc_port) {
    version.rpc = make_rpc_table(*version.core, static_cast<uint64_t>(config.http.max_body_bytes));
  }
  return version;
}

}  // namespace omnibus
