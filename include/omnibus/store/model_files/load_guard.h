// A file that shrinks while it is mapped raises SIGBUS at the next touch of a lost page. During a load that
// must end the process with a clear line, never with a page of zeros packed as weights.
#pragma once

#include <memory>

#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

// Exit code of a process whose model file became unreadable during a load.
inline constexpr int kUnreadableFileExit = 74;

// While it lives, SIGBUS inside the file's mapping writes "<path>: the file was cut short ... at byte N" to
// stderr and ends the process with kUnreadableFileExit; SIGBUS elsewhere does what it did before. Keep it
// from the first touch of tensor data to the last. Any thread; up to 16 at a time in one process (checked).
class LoadGuard {
 public:
  explicit LoadGuard(std::shared_ptr<const GgufFile> file);
  ~LoadGuard();
  LoadGuard(const LoadGuard&) = delete;
  LoadGuard& operator=(const LoadGuard&) = delete;

 private:
  std::shared_ptr<const GgufFile> file_;
  int slot_;
};

}  // namespace omnibus
