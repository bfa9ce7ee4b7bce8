// Signals as values that one thread waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <pthread.h>

namespace omnibus {

// Blocks SIGTERM, SIGINT and SIGHUP for the calling thread and those it starts from now on: made before any
// other thread exists. A closed pipe no longer ends the process: who read the log may leave.
class Signals {
 public:
  Signals();
  // The thread that made it: the next signal's number, or nullopt after `limit` or a wake().
  std::optional<int> wait_for(std::chrono::milliseconds limit) const;
  // Any thread: wait_for() returns, now or when it is called next.
  void wake() const;

 private:
  const pthread_t owner_;
};

// While it lives, SIGTERM and SIGINT end the process at once with 128 + their number: for start-up, when
// there is nothing to drain yet, and for the end, when all is drained. SIGHUP waits.
class ExitOnStopSignal {
 public:
  ExitOnStopSignal();
  ~ExitOnStopSignal();
  ExitOnStopSignal(const ExitOnStopSignal&) = delete;
  ExitOnStopSignal& operator=(const ExitOnStopSignal&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace omnibus
