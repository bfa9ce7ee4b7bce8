// LogWriter: the one thread that writes log lines. Whoever logs hands a line over and goes on: a reader of
// stderr that stalls holds up this thread and no other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace omnibus {

class LogWriter {
 public:
  // Lines wait in a queue of `max_bytes`; beyond that the oldest are dropped, and before the next one
  // `gap_line(how many)` is written.
  LogWriter(int fd, size_t max_bytes, std::function<std::string(int64_t)> gap_line);
  // What waits is still written; the reader of `fd` must read or be gone.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread; lines of one thread stay in their order. `line` has no end of line.
  void put(std::string line);
  // Until all that was put before is written, or for `limit`. Whether it is written.
  bool flush(std::chrono::milliseconds limit);
  // So far.
  int64_t dropped() const;

 private:
  void run();
  bool has_thread() const { return thread_.joinable(); }
  // Both under the lock. The next lines, with their ends, or std::bad_alloc and nothing taken.
  std::string take_batch();
  void drop_oldest();

  const int fd_;
  const size_t max_bytes_;
  const std::function<std::string(int64_t)> gap_line_;
  mutable std::mutex mutex_;
  std::condition_variable work_, written_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  int64_t put_ = 0, done_ = 0;  // lines; those that were dropped are done
  int64_t dropped_ = 0, unreported_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // none where the system gives none: then put() writes
};

}  // namespace omnibus
