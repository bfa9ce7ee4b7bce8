// Lifecycle: what a server is up to, for its probes and its admin routes.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "omnibus/control/engine/async_engine.h"

namespace omnibus {

// From loading to serving to draining. Any thread.
class Lifecycle {
 public:
  // The model is loaded, and a forward pass has succeeded. `engine` outlives every listener that refers to
  // this.
  void begin_serving(AsyncEngine* engine) { engine_ = engine; }
  // Not ready from now on. Whether requests are still taken is decided elsewhere. False: it was so already.
  bool begin_drain() { return !draining_.exchange(true); }

  // Null while the model is loaded.
  AsyncEngine* engine() const { return engine_; }
  bool draining() const { return draining_; }
  std::chrono::seconds uptime() const;

  // Why the process should be replaced: "stalled" or "failed"; "" if there is no reason.
  std::string why_not_live() const;
  // Why no requests should be sent here: those reasons, or "loading" or "draining"; "" if they may be.
  std::string why_not_ready() const;

 private:
  std::atomic<AsyncEngine*> engine_{nullptr};
  std::atomic<bool> draining_{false};
  const SteadyClock clock_;
  const MonotonicNs started_ns_ = clock_.now_ns();
};

}  // namespace omnibus
