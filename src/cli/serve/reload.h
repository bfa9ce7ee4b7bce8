// Reloader: reads the configuration again and swaps in what of it can change while the server runs.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/server/admin/admin_routes.h"

#include "listeners.h"
#include "serving_api.h"

namespace omnibus {

class Reloader {
 public:
  using ReadConfig = std::function<StatusOr<ServeConfig>()>;

  // `read_config` reads command line, environment and files as the start did. `metrics` outlives it.
  Reloader(ServeConfig config, ReadConfig read_config, MetricsRegistry* metrics);

  // What is changed.
  struct Target {
    ServingApi& api;
    AsyncEngine& engine;
    const Listeners& listeners;
    ListenerRoutes routes;  // `open` is made anew
  };
  // All of it or nothing: an error leaves everything as it was. The result is logged. One thread.
  Status reload(Target target);

  // What holds now. The thread of reload().
  const ServeConfig& config() const { return config_; }
  // Any thread.
  ConfigState state() const;

 private:
  Status try_reload(Target target);

  const ReadConfig read_config_;
  ServeConfig config_;
  const Counter succeeded_, failed_;
  const Gauge generation_;
  mutable std::mutex mutex_;
  ConfigState state_;
};

// `fresh` where it can be swapped in, `running` elsewhere; `needs_restart` gets the flags (without dashes in
// front) whose values differ all the same.
ServeConfig reloadable_part(const ServeConfig& running, const ServeConfig& fresh,
                            std::vector<std::string>& needs_restart);

}  // namespace omnibus
