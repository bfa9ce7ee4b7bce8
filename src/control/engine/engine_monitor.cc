#include "engine_monitor.h"

#include <chrono>
#include <utility>

#include "omnibus/base/common/log.h"

namespace omnibus {
namespace {

constexpr std::chrono::milliseconds kTick{200};

}  // namespace

bool StallDetector::tick(MonotonicNs now) {
  const StepWatch watch = state_->watch();
  const bool stood_still = last_tick_ns_ != 0 && now - last_tick_ns_ > Watchdog::kLongestTickNs;
  last_tick_ns_ = now;
  if (watchdog_.tick(now, watch)) return true;
  const bool answered = state_->pings_answered == pings_;
  // Behind a step the answer may be as late as the step.
  if (watch.started_ns != 0 || stood_still) {
    pinged_ns_ = now;
    return false;
  }
  if (!answered) return now - pinged_ns_ > kPingNs;
  if (now - pinged_ns_ < kPingNs) return false;
  pinged_ns_ = now;
  ping_(++pings_);
  return false;
}

EngineMonitor::EngineMonitor(const EngineState* state, const Clock* clock, std::function<void(uint64_t)> ping)
    : clock_(clock), detector_(state, std::move(ping)), thread_([this] { run(); }) {}

EngineMonitor::~EngineMonitor() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void EngineMonitor::run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kTick, [&] { return stopped_; })) {
    const bool stalled = detector_.tick(clock_->now_ns());
    if (stalled != stalled_)
      log_warning("{}", stalled ? "the engine stands still" : "the engine moves again");
    stalled_ = stalled;
  }
}

}  // namespace omnibus
