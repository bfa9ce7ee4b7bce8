// GET /api/version, /api/tags, /api/ps and POST /api/show: what there is.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <sys/stat.h>

#include "omnibus/base/common/wall_clock.h"

#include "api/json_response.h"
#include "api/request_body.h"
#include "handlers.h"
#include "model_names.h"
#include "ollama_body.h"
#include "ollama_prompt.h"
#include "timestamp.h"

namespace omnibus {
namespace {

// One model as the lists show it, stored or only served.
struct ListedModel {
  std::string name, digest, path;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  std::string license;
};

int64_t modified_ns_of(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

ListedModel served_model(const OllamaContext& context) {
  ListedModel out;
  out.name = context.api().config.model_names.front();
  out.digest = context.served_digest();
  out.path = context.config().model_path;
  out.bytes = static_cast<uint64_t>(context.api().config.file_bytes);
  out.modified_ns = out.path.empty() ? context.api().created * 1'000'000'000 : modified_ns_of(out.path);
  return out;
}

ListedModel listed(const StoredModel& model) {
  return {model.name, model.digest, model.path, model.bytes, model.modified_ns, model.license};
}

ModelDetails details_of(const OllamaContext& context, const ListedModel& model) {
  if (!model.path.empty()) return context.details().get(model.digest, model.path);
  ModelDetails details;
  details.parameters = context.api().config.parameters;
  return details;
}

Json list_entry(const OllamaContext& context, const ListedModel& model) {
  Json out;
  out["name"] = name_with_tag(model.name);
  out["model"] = name_with_tag(model.name);
  out["modified_at"] = rfc3339(model.modified_ns);
  out["size"] = model.bytes;
  out["digest"] = model.digest;
  out["details"] = details_json(details_of(context, model));
  return out;
}

// All of the store, and the served model under the names that the store does not have; the latest first.
StatusOr<std::vector<ListedModel>> all_models(const OllamaContext& context) {
  std::vector<ListedModel> models;
  OMNIBUS_ASSIGN_OR_RETURN(const auto stored, context.list_stored());
  for (const StoredModel& model : stored) models.push_back(listed(model));
  for (const std::string& name : context.api().config.model_names) {
    const bool known = std::any_of(models.begin(), models.end(), [&](const ListedModel& model) {
      return same_model_name(model.name, name);
    });
    if (known) continue;
    models.push_back(served_model(context));
    models.back().name = name;
  }
  std::stable_sort(models.begin(), models.end(),
                   [](const ListedModel& a, const ListedModel& b) { return a.modified_ns > b.modified_ns; });
  return models;
}

StatusOr<ListedModel> find_model(const OllamaContext& context, const std::string& name) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto stored, context.find_stored(name));
  if (stored) return listed(*stored);
  if (!context.is_served_name(name) && !context.api().config.any_model) return ollama_model_not_found(name);
  ListedModel model = served_model(context);
  if (!name.empty()) model.name = name;
  return model;
}

// The keys of `text`, one a line, as a Modelfile has them; nothing of it names a path.
std::string modelfile(const std::string& name, const std::string& chat_template) {
  std::string out = fmt::format("# Modelfile made by omnibus\nFROM {}\n", name_with_tag(name));
  if (!chat_template.empty()) out += fmt::format("TEMPLATE \"\"\"{}\"\"\"\n", chat_template);
  return out;
}

// The model's own defaults of options, a line each, as a Modelfile has them.
std::string parameters_text(const SamplingDefaults& defaults) {
  std::string out;
  const auto add = [&out](const char* name, const auto& value) {
    if (!value) return;
    if (!out.empty()) out += "\n";
    out += fmt::format("{:<30} {}", name, *value);
  };
  add("temperature", defaults.temperature);
  add("top_k", defaults.top_k);
  add("top_p", defaults.top_p);
  add("min_p", defaults.min_p);
  add("repeat_penalty", defaults.repetition_penalty);
  return out;
}

bool is_served(const OllamaContext& context, const ListedModel& model) {
  const OllamaConfig& config = context.config();
  return config.model_digest.empty() ? model.path == config.model_path : model.digest == config.model_digest;
}

// What is in the file at the model's path, as far as it can be read.
void add_file_facts(Json& out, const OllamaContext& context, const ListedModel& model, bool verbose,
                    std::string& chat_template) {
  out["model_info"] = Json::object();
  out["license"] = model.license;
  if (model.path.empty()) return;
  const auto file = GgufFile::open(model.path);
  if (!file.ok()) return;
  out["model_info"] = model_info_json(**file, verbose);
  if (model.license.empty()) out["license"] = (*file)->get_string("general.license").value_or("");
  if (!is_served(context, model)) {
    chat_template = (*file)->get_string("tokenizer.chat_template").value_or("");
  }
}

}  // namespace

HttpResponse handle_ollama_version(const OllamaContext& context) {
  Json body;
  body["version"] = context.api().config.version;
  return json_response(body);
}

StatusOr<HttpResponse> handle_ollama_tags(const OllamaContext& context, const HttpRequest& /*request*/) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto models, all_models(context));
  Json body;
  body["models"] = Json::array();
  for (const ListedModel& model : models) body["models"].push_back(list_entry(context, model));
  return json_response(body);
}

StatusOr<HttpResponse> handle_ollama_ps(const OllamaContext& context, const HttpRequest& /*request*/) {
  // 292 years after 1970: what Ollama's clients show as "forever".
  constexpr int64_t kFarAway = std::numeric_limits<int64_t>::max();
  const int64_t until = context.wanted_until();
  OMNIBUS_ASSIGN_OR_RETURN(const ListedModel model,
                           find_model(context, context.api().config.model_names.front()));
  Json entry = list_entry(context, model);
  entry.erase("modified_at");
  const int64_t memory = context.api().engine->memory_plan().total();
  if (memory > 0) entry["size"] = memory;
  entry["expires_at"] = rfc3339(until == kKeepForever ? kFarAway : until);
  entry["size_vram"] = 0;
  entry["context_length"] = context.api().max_model_len();
  Json body;
  body["models"] = Json::array({std::move(entry)});
  return json_response(body);
}

StatusOr<HttpResponse> handle_ollama_show(const OllamaContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelBody asked, parse_model_body(request.body, ModelRoute::kShow,
                                                                   context.api().config.strict_fields));
  OMNIBUS_ASSIGN_OR_RETURN(const ListedModel model, find_model(context, asked.model));
  const ApiContext& api = context.api();
  std::string chat_template = api.chat_template ? api.chat_template->source() : "";
  Json facts;
  add_file_facts(facts, context, model, asked.verbose, chat_template);
  Json body;
  body["license"] = facts["license"];
  body["modelfile"] = modelfile(model.name, chat_template);
  body["parameters"] = is_served(context, model) ? parameters_text(api.config.defaults) : "";
  body["template"] = chat_template;
  body["system"] = "";
  body["details"] = details_json(details_of(context, model));
  body["model_info"] = std::move(facts["model_info"]);
  body["capabilities"] = Json::array({"completion"});
  const bool thinks =
      is_served(context, model) ? served_model_thinks(api) : template_knows_thinking(chat_template);
  if (thinks) body["capabilities"].push_back("thinking");
  body["modified_at"] = rfc3339(model.modified_ns);
  HttpResponse response = json_response(body);
  add_ignored_fields(response.headers, asked.ignored);
  return response;
}

}  // namespace omnibus
