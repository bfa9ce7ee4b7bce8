// OllamaContext: what the handlers of Ollama's routes share. One per server; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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

class OllamaContext {
 public:
  OllamaContext(ContextPtr api, OllamaConfig config);

  const ApiContext& api() const { return *api_; }
  const OllamaConfig& config() const { return config_; }
  // nullopt: there is no store.
  const std::optional<ModelStore>& store() const { return store_; }
  ModelDetailsCache& details() const { return details_; }

  // 404 "model 'x' not found" unless `name` means the served model: one of its names, or a name in the store
  // of the very file that is served. 400 says so when the store has the model and another one is served.
  // Reads no file: what another process has changed is known after the next look at the disk, which a name
  // that nobody has brings about.
  Status check_served(const std::string& name) const;
  bool is_served_name(const std::string& name) const;
  // The models of the store, none without one. Disk thread.
  StatusOr<std::vector<StoredModel>> list_stored() const;
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
  TextPool& disk() const { return disk_; }

 private:
  void look_again() const;

  const ContextPtr api_;
  const OllamaConfig config_;
  const std::optional<ModelStore> store_;
  mutable ModelDetailsCache details_;
  mutable StoredNames names_;
  mutable std::atomic<int64_t> looked_ns_{0};  // when look_again() last asked for it
  mutable FileDigest file_digest_;
  mutable std::atomic<int64_t> last_use_ns_;
  mutable std::atomic<int64_t> keep_alive_{kDefaultKeepAlive};
  mutable TextPool disk_;  // last: its jobs use all of the above
};

// What a client is told of a store that fails: not the path that the message names, which goes to the log.
// Other errors stay as they are.
Status store_error_for_client(const Status& error);

// 404, in Ollama's words.
Status ollama_model_not_found(const std::string& name);

}  // namespace omnibus
