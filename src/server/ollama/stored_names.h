// StoredNames: which file each name in the store means, as of the last look at the disk.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/store/model_store/model_store.h"

namespace omnibus {

// Any thread; looking up a name reads no file.
class StoredNames {
 public:
  // What the store has now, or why that is not known.
  void set(const StatusOr<std::vector<StoredModel>>& models);
  // Digest of the file that a name or an alias, however spelt, means; nullopt: nobody has that name.
  StatusOr<std::optional<std::string>> digest_of(std::string_view name) const;

 private:
  struct Snapshot {
    Status status;
    std::unordered_map<std::string, std::string> digests;  // by canonical name
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<Snapshot>();
};

}  // namespace omnibus
