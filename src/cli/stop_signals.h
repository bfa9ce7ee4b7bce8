// SIGTERM and SIGINT as values that one thread waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace omnibus {

// Blocks both signals for the calling thread and those it starts from now on: call before any other thread
// exists. wait_for() then collects them. A closed pipe no longer ends the process: who read the log may
// leave.
class StopSignals {
 public:
  StopSignals();
  // The signal's number, or nullopt after `limit`.
  std::optional<int> wait_for(std::chrono::milliseconds limit) const;
};

// While it lives, a stop signal ends the process at once with 128 + its number: for start-up, when there is
// nothing to drain yet.
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
