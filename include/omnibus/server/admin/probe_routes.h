// The routes that supervisors and scrapers call: they answer while the model is loaded, too.
#pragma once

#include "omnibus/base/common/metrics.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// /livez: 200 while the process is worth keeping. /readyz, /health, /v1/health and /ping: 200 while requests
// are served. Else 503 with the reason, in a body that clients of OpenAI's API and of llama.cpp can read.
// `lifecycle` outlives the routes.
void add_probe_routes(const Lifecycle& lifecycle, RouteTable& routes);

// GET /metrics. `metrics` outlives the routes.
void add_metrics_route(const MetricsRegistry& metrics, RouteTable& routes);

// 503 for whatever needs the model while it is loaded.
Status still_loading();

}  // namespace omnibus
