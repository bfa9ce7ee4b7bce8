// EngineMonitor: watches the engine's thread from one of its own. A step that takes longer than it may, or a
// thread without a step that does not answer through its inbox, is a stall.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "omnibus/base/common/clock.h"

#include "engine_state.h"
#include "watchdog.h"

namespace omnibus {

// One tick of the monitor, without threads.
class StallDetector {
 public:
  // An idle engine is asked this often, and must answer this soon.
  static constexpr int64_t kPingNs = 1'000'000'000;

  // `ping(number)` asks the engine to answer in EngineState::pings_answered.
  StallDetector(const EngineState* state, std::function<void(uint64_t)> ping)
      : state_(state), ping_(std::move(ping)) {}
  // True: stalled.
  bool tick(MonotonicNs now);

 private:
  const EngineState* const state_;
  const std::function<void(uint64_t)> ping_;
  Watchdog watchdog_;
  uint64_t pings_ = 0;
  MonotonicNs pinged_ns_ = 0;
  MonotonicNs last_tick_ns_ = 0;
};

class EngineMonitor {
 public:
  EngineMonitor(const EngineState* state, const Clock* clock, std::function<void(uint64_t)> ping);
  ~EngineMonitor();
  EngineMonitor(const EngineMonitor&) = delete;
  EngineMonitor& operator=(const EngineMonitor&) = delete;

  // Any thread.
  bool stalled() const { return stalled_; }

 private:
  void run();

  const Clock* const clock_;
  StallDetector detector_;
  std::atomic<bool> stalled_{false};
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace omnibus
