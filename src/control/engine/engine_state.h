// EngineState: what the engine's thread shows to others. Any thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"

#include "watchdog.h"

namespace omnibus {

class EngineState {
 public:
  std::atomic<int32_t> running{0}, waiting{0}, used_blocks{0};
  std::atomic<uint64_t> steps{0};           // completed
  std::atomic<uint64_t> pings_answered{0};  // number of the last

  // The first failure counts.
  void set_failure(Status why) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(why);
  }
  Status failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  // The oldest step in flight.
  void set_watch(const StepWatch& watch) {
    std::lock_guard lock(mutex_);
    watch_ = watch;
  }
  StepWatch watch() const {
    std::lock_guard lock(mutex_);
    return watch_;
  }

 private:
  mutable std::mutex mutex_;
  Status failure_;
  StepWatch watch_;
};

}  // namespace omnibus
