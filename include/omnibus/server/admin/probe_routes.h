// The routes that supervisors and scrapers call: they answer while the model is loaded, too.
#pragma once

#include <memory>

#include "omnibus/base/common/metrics.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

class TextPool;

// /livez: 200 while the process is worth keeping. /readyz, /health, /v1/health and /ping: 200 while requests
// are served. Else 503 with the reason, in a body that clients of OpenAI's API and of llama.cpp can read.
// `lifecycle` outlives the routes.
void add_probe_routes(const Lifecycle& lifecycle, RouteTable& routes);

// Writes the metrics on a thread of its own: they are collected from files of /proc, too, which a
// connection's thread does not wait for. Outlives the routes and their requests.
class MetricsPage {
 public:
  explicit MetricsPage(const MetricsRegistry& metrics);
  ~MetricsPage();
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  // 503 where more wait for it than anybody's scraper sends.
  void answer(const ReplyPtr& reply);

 private:
  const MetricsRegistry& metrics_;
  std::unique_ptr<TextPool> pool_;
};

// GET /metrics.
void add_metrics_route(MetricsPage& page, RouteTable& routes);

// 503 for whatever needs the model while it is loaded.
Status still_loading();

}  // namespace omnibus
