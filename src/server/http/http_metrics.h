// HttpMetrics: what the listeners count. Names are those of prometheus-fastapi-instrumentator, which vLLM has
// in front of its API; `omnibus_http_*` where it has none. Every label is of a closed set: a route's pattern
// or "none", a known method or "other", a status that omnibus sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "omnibus/base/common/log_limiter.h"
#include "omnibus/base/common/metrics.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// One answered request.
struct HttpExchange {
  std::string_view handler;  // pattern of the route, or "none"
  std::string_view method;   // as sent
  int status = 0;
  double seconds = 0;                              // from its whole head to the last byte of the answer
  uint64_t request_bytes = 0, response_bytes = 0;  // of the body; of the answer, head included
};

// Any thread. Listeners that share a registry share the metrics.
class HttpMetrics {
 public:
  // The clock paces log lines only. Both outlive it.
  HttpMetrics(MetricsRegistry* registry, const Clock* clock);

  void count(const HttpExchange& exchange);

  Gauge in_progress, connections;
  Counter connections_total, connections_refused, slow_readers;
  // Bound the log lines about requests that were not served, and about connections turned away.
  LogLimiter refused_lines, turned_away_lines;

 private:
  struct OfHandler {
    Histogram duration, request_size, response_size;
  };
  Counter& requests(const std::string& handler, const char* method, int status);
  OfHandler& of(const std::string& handler, const char* method);

  MetricsRegistry* const registry_;
  const Histogram duration_;
  std::mutex mutex_;
  std::map<std::tuple<std::string, const char*, int>, Counter> requests_;
  std::map<std::pair<std::string, const char*>, OfHandler> handlers_;
};

// "GET", ..., or "other".
const char* method_label(std::string_view method);

}  // namespace omnibus
