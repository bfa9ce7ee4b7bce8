#include "file_digest.h"

#include "omnibus/base/common/log.h"
#include "omnibus/store/model_store/model_store.h"

namespace omnibus {

std::optional<std::string> FileDigest::get() {
  const std::lock_guard lock(mutex_);
  if (digest_ || running_) return digest_;
  running_ = true;
  // A thread that failed before has nothing left to do: to join it takes no time.
  thread_ = std::jthread([this](const std::stop_token& stop) { compute(stop); });
  return std::nullopt;
}

void FileDigest::compute(const std::stop_token& stop) {
  auto digest = digest_of_file(path_, stop);
  if (!digest.ok() && !stop.stop_requested())
    log_error("digest of the model: {}", status_message(digest.status()));
  const std::lock_guard lock(mutex_);
  running_ = false;
  if (digest.ok()) digest_ = *std::move(digest);
}

}  // namespace omnibus
