// What the main thread of a server waits for: signals, and what admin routes ask of it.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "omnibus/base/common/status.h"

#include "stop_signals.h"

namespace omnibus {

class Control {
 public:
  using ReloadDone = std::function<void(const Status&)>;

  // `signals` outlives it.
  explicit Control(const Signals& signals) : signals_(signals) {}

  // Any thread.
  void ask_to_drain() {
    {
      std::lock_guard lock(mutex_);
      drain_ = true;
    }
    signals_.wake();
  }
  void ask_to_reload(ReloadDone done) {
    {
      std::lock_guard lock(mutex_);
      reloads_.push_back(std::move(done));
    }
    signals_.wake();
  }

  // The main thread. Events come together; at least one of the fields is set, unless `limit` is over.
  struct Events {
    std::optional<int> signal;  // SIGTERM, SIGINT or SIGHUP
    bool drain = false;         // once
    std::vector<ReloadDone> reloads;
  };
  Events wait_for(std::chrono::milliseconds limit) {
    Events events;
    events.signal = signals_.wait_for(limit);
    std::lock_guard lock(mutex_);
    events.drain = std::exchange(drain_, false);
    events.reloads.swap(reloads_);
    return events;
  }

 private:
  const Signals& signals_;
  std::mutex mutex_;
  bool drain_ = false;
  std::vector<ReloadDone> reloads_;
};

}  // namespace omnibus
