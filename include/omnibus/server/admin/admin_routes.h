// The routes of the admin listener: what an operator, and nobody who merely infers, may do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/metrics.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/admin/probe_routes.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// How the configuration came to be what it is.
struct ConfigState {
  uint64_t generation = 1;                 // raised by each reload that succeeds
  std::vector<std::string> needs_restart;  // flags whose new values wait for one
  std::string last_error;                  // of the last reload; "": it succeeded, or there was none
};

// Called on the admin listener's thread; must not block.
struct AdminActions {
  // Begins to drain; the process ends when it is done. Not called twice.
  std::function<void()> drain;
  // Reads the configuration again and then calls `done`, on any thread.
  std::function<void(std::function<void(const Status& result)> done)> reload;
  std::function<ConfigState()> config_state;
};

struct AdminConfig {
  std::string version;
  std::string model;  // as it was asked for on the command line
  AdminActions actions;
};

// POST /drain, /reload, /reset_prefix_cache and /log_level, GET /status; the probes; /metrics. All but the
// last two want an admin key where there are keys. `lifecycle` and `metrics` outlive the routes.
void add_admin_routes(AdminConfig config, Lifecycle& lifecycle, MetricsPage& metrics, RouteTable& routes);

}  // namespace omnibus
