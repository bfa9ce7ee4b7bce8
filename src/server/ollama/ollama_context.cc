#include "ollama_context.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/wall_clock.h"

#include "model_names.h"

namespace omnibus {
namespace {

constexpr size_t kDiskQueue = 64;
// Names that nobody has make the disk thread read the store no more often.
constexpr int64_t kLookAgainNs = 1'000'000'000;

std::optional<ModelStore> open_store(const std::string& home) {
  if (home.empty()) return std::nullopt;
  return ModelStore(home);
}

}  // namespace

Status store_error_for_client(const Status& error) {
  const ErrorDetail detail = error_detail(error);
  if (detail.http < 500 || detail.code == kStoreBusy || detail.code == kStoreFull ||
      error.code() == StatusCode::kUnimplemented)
    return error;
  log_error("model store: {}", status_message(error));
  return absl::InternalError("The model store cannot be used; the server's log says why");
}

Status ollama_model_not_found(const std::string& name) {
  return with_detail(absl::NotFoundError(fmt::format("model '{}' not found", name_for_error(name))),
                     ErrorDetail{.http = 404, .type = {}, .code = "model_not_found", .param = "model"});
}

OllamaModels::OllamaModels(OllamaConfig config_in)
    : config(std::move(config_in)),
      store(open_store(config.store_home)),
      file_digest(config.model_path),
      last_use_ns(wall_clock_ns()),
      disk(1, kDiskQueue) {
  if (store) names.set(store->list());
}

StatusOr<std::vector<StoredModel>> OllamaModels::list() {
  if (!store) return std::vector<StoredModel>();
  auto models = store->list();
  names.set(models);
  return models;
}

void OllamaModels::look_again() {
  int64_t last = looked_ns;
  const int64_t now = wall_clock_ns();
  if (now - last < kLookAgainNs && now >= last) return;
  if (looked_ns.compare_exchange_strong(last, now)) (void)disk.try_post([this] { (void)list(); });
}

bool OllamaContext::is_served_name(const std::string& name) const {
  const auto& names = api_->config.model_names;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& served) { return same_model_name(served, name); });
}

StatusOr<std::optional<StoredModel>> OllamaContext::find_stored(const std::string& name) const {
  // A name that no model of a store can have is not looked for on the disk.
  if (!models_->store || !check_model_name(local_model_name(name)).ok()) return std::nullopt;
  OMNIBUS_ASSIGN_OR_RETURN(const auto models, list_stored());
  for (const StoredModel& model : models) {
    if (same_model_name(model.name, name)) return model;
  }
  for (const StoredModel& model : models) {
    for (const std::string& alias : model.aliases) {
      if (same_model_name(alias, name)) return model;
    }
  }
  return std::nullopt;
}

Status OllamaContext::check_served(const std::string& name) const {
  if (api_->config.any_model || is_served_name(name)) return {};
  if (name.empty()) return invalid_field("model", "model is required", "missing_required_parameter");
  // A name that no model of a store can have is not looked for.
  if (!models_->store || !check_model_name(local_model_name(name)).ok()) return ollama_model_not_found(name);
  const auto digest = models_->names.digest_of(name);
  if (!digest.ok() || !*digest) models_->look_again();
  if (!digest.ok()) return store_error_for_client(digest.status());
  if (!*digest) return ollama_model_not_found(name);
  if (!models_->config.model_digest.empty() && **digest == models_->config.model_digest) return {};
  return invalid_field("model", fmt::format("model '{}' is in the store, but this server serves '{}' only",
                                            name_for_error(name), api_->config.model_names.front()));
}

void OllamaContext::touch(std::optional<int64_t> keep_alive) const {
  models_->last_use_ns = wall_clock_ns();
  models_->keep_alive = keep_alive.value_or(kDefaultKeepAlive);
}

int64_t OllamaContext::wanted_until() const {
  const int64_t keep = models_->keep_alive;
  if (keep == kKeepForever) return kKeepForever;
  const int64_t last = models_->last_use_ns;
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  const int64_t until = keep > kLatest - last ? kLatest : last + keep;
  return std::max(until, wall_clock_ns());
}

std::string OllamaContext::served_digest() const {
  if (!models_->config.model_digest.empty()) return models_->config.model_digest;
  const auto digest = models_->config.model_path.empty() ? std::nullopt : models_->file_digest.get();
  return digest.value_or(std::string(64, '0'));
}

}  // namespace omnibus
