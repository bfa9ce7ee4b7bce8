// Routes that look things up, and those that say what is not there.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "omnibus/server/http/json_body.h"
#include "omnibus/server/llama_cpp/llama_cpp_api.h"

#include "api/json_response.h"
#include "handlers.h"
#include "llama_cpp_error.h"
#include "native_fields.h"
#include "native_settings.h"

namespace omnibus {
namespace {

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return id == kNoToken ? std::string() : std::string(tokenizer.token_bytes(id));
}

// What a request runs with that sets nothing.
NativeFields default_fields(const ApiContext& context) {
  NativeFields fields;
  context.config.defaults.apply_to(fields.sampling);
  if (context.config.default_max_tokens > 0) fields.n_predict = context.config.default_max_tokens;
  fields.sampling.seed = context.config.seed.value_or(UINT32_MAX);
  return fields;
}

bool has_query(const HttpRequest& request, std::string_view pair) {
  std::string_view query = request.query;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    if (query.substr(0, end) == pair) return true;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

}  // namespace

HttpResponse handle_props(const ApiContext& context, const HttpRequest& /*request*/) {
  const Tokenizer& tokenizer = context.tokenizer();
  Json body;
  body["default_generation_settings"]["n_ctx"] = context.max_model_len();
  body["default_generation_settings"]["params"] = native_settings(context, default_fields(context));
  body["total_slots"] = context.engine->config().max_num_seqs;
  body["model_alias"] = context.config.model_names.front();
  body["model_path"] = context.config.model_file;
  body["modalities"]["vision"] = false;
  body["modalities"]["audio"] = false;
  body["endpoint_slots"] = context.config.slots;
  body["endpoint_props"] = false;  // POST
  body["endpoint_metrics"] = true;
  body["chat_template"] = context.chat_template ? context.chat_template->source() : std::string();
  body["bos_token"] = token_text(tokenizer, tokenizer.spec().bos);
  body["eos_token"] = token_text(tokenizer, tokenizer.spec().eos);
  body["build_info"] = "omnibus " + context.config.version;
  body["is_sleeping"] = false;
  return json_response(body);
}

// Requests have no slots of their own here: as many of these are busy as requests run.
HttpResponse handle_slots(const ApiContext& context, const HttpRequest& request) {
  if (!context.config.slots) {
    return render_llama_cpp_error(not_supported("This server does not show its slots (--no-slots)"),
                                  request.path);
  }
  const int32_t running = context.engine->health().running;
  const int32_t slots = context.engine->config().max_num_seqs;
  if (running >= slots && has_query(request, "fail_on_no_slot=1")) {
    return render_llama_cpp_error(absl::UnavailableError("no slot available"), request.path);
  }
  Json body = Json::array();
  for (int32_t i = 0; i < slots; ++i) {
    Json slot;
    slot["id"] = i;
    slot["n_ctx"] = context.max_model_len();
    slot["speculative"] = false;
    slot["is_processing"] = i < running;
    body.push_back(std::move(slot));
  }
  return json_response(body);
}

HttpResponse handle_slot_action(const ApiContext& context, const HttpRequest& request) {
  const std::string& id = request.path_parameter;
  if (std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return handle_not_supported(context, request);
  }
  return render_llama_cpp_error(
      absl::NotFoundError(fmt::format("There is no slot {}", quote_value(Json(id)))), request.path);
}

HttpResponse handle_native_models(const ApiContext& context, const HttpRequest& /*request*/) {
  const std::string& name = context.config.model_names.front();
  Json model;
  model["id"] = name;
  model["aliases"] = context.config.model_names;
  model["tags"] = Json::array();
  model["object"] = "model";
  model["created"] = context.created;
  model["owned_by"] = "omnibus";
  model["meta"]["n_vocab"] = context.tokenizer().vocab_size();
  model["meta"]["n_ctx"] = context.max_model_len();
  if (context.config.parameters > 0) {
    model["meta"]["n_params"] = context.config.parameters;
    model["meta"]["size"] = context.config.file_bytes;
  }
  Json body;
  body["object"] = "list";
  body["data"] = Json::array({std::move(model)});
  return json_response(body);
}

HttpResponse handle_lora_adapters(const ApiContext& /*context*/, const HttpRequest& /*request*/) {
  return json_response(Json::array());
}

HttpResponse handle_not_supported(const ApiContext& /*context*/, const HttpRequest& request) {
  return render_llama_cpp_error(
      not_supported(fmt::format("{} {} is not supported here", request.method, request.path)), request.path);
}

}  // namespace omnibus
