// FileDigest: the SHA-256 of a file of any size, without waiting for it.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace omnibus {

// Any thread. The destructor ends a computation that still runs.
class FileDigest {
 public:
  explicit FileDigest(std::string path) : path_(std::move(path)) {}

  // 64 hex digits once they are known. The first call begins to compute them, on a thread of their own; so
  // does a call after a failure, which is logged.
  std::optional<std::string> get();

 private:
  void compute(const std::stop_token& stop);

  const std::string path_;
  std::mutex mutex_;
  bool running_ = false;
  std::optional<std::string> digest_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace omnibus
