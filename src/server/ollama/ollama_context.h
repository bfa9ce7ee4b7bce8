// OllamaModels and OllamaContext: what the handlers of Ollama's routes share. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/server/ollama/ollama_api.h"
#include "omnibus/store/model_store/model_store.h"

#include "api/api_context.h"
#include "api/text_pool.h"
#include "file_digest.h"
#include "keep_alive.h"
#include "model_details.h"
#include "stored_names.h"

namespace omnibus {

// One per server.
struct OllamaModels {
  explicit OllamaModels(OllamaConfig config_in);

  // The models of the store, none without one. Disk thread.
  StatusOr<std::vector<StoredModel>> list();
  // Has the disk thread list them, unless it did so a moment ago.
  void look_again();

  const OllamaConfig config;
  const std::optional<ModelStore> store;
  ModelDetailsCache details;
  StoredNames names;
  std::atomic<int64_t> looked_ns{0};  // when look_again() last asked for it
  FileDigest file_digest;
  std::atomic<int64_t> last_use_ns;
  std::atomic<int64_t> keep_alive{kDefaultKeepAlive};
  TextPool disk;  // last: its jobs use all of the above
};

// One per generation of the API's settings. Refers to `models`, which its users keep alive: all but the jobs
// of the disk thread, which ends before they do.
class OllamaContext {
 public:
  OllamaContext(ContextPtr api, OllamaModels* models) : api_(std::move(api)), models_(models) {}

  const ApiContext& api() const { return *api_; }
  const OllamaConfig& config() const { return models_->config; }
  // nullopt: there is no store.
  const std::optional<ModelStore>& store() const { return models_->store; }
  ModelDetailsCache& details() const { return models_->details; }

  // 404 "model 'x' not found" unless `name` means the served model: one of its names, or a name in the store
  // of the very file that is served. 400 says so when the store has the model and another one is served.
  // Reads no file: what another process has changed is known after the next look at the disk, which a name
  // that nobody has brings about.
  Status check_served(const std::string& name) const;
  bool is_served_name(const std::string& name) const;
  StatusOr<std::vector<StoredModel>> list_stored() const { return models_->list(); }
  // The stored model of that name or alias; nullopt: there is none (or no store). Disk thread.
  StatusOr<std::optional<StoredModel>> find_stored(const std::string& name) const;

  // A request came, or asked for `keep_alive`: the model is wanted until then.
  void touch(std::optional<int64_t> keep_alive) const;
  // Nanoseconds since the epoch until which the model is wanted, never in the past; kKeepForever for always.
  int64_t wanted_until() const;

  // SHA-256 of the served file; 64 zeros when there is no file, and until the digest of one that is not in
  // the store is computed, which the first call begins.
  std::string served_digest() const;

  // Handlers of routes that read or write the disk run here, one at a time.
  TextPool& disk() const { return models_->disk; }

 private:
  const ContextPtr api_;
  OllamaModels* const models_;
};

// What a client is told of a store that fails: not the path that the message names, which goes to the log.
// Other errors stay as they are.
Status store_error_for_client(const Status& error);

// 404, in Ollama's words.
Status ollama_model_not_found(const std::string& name);

}  // namespace omnibus
