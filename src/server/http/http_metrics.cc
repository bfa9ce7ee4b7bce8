#include "http_metrics.h"

#include <vector>

namespace omnibus {
namespace {

// Of the instrumentator: few for each handler, many for all together.
const std::vector<double> kSeconds = {0.1, 0.5, 1};
const std::vector<double> kFineSeconds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1,  1.5, 2,
                                          2.5,  3,     3.5,  4,     4.5, 5,    7.5, 10,   30, 60};
const std::vector<double> kBytes = {1e3, 1e4, 1e5, 1e6, 1e7};
// So many lines about refused requests and about connections turned away in ten seconds; of more, only their
// number.
constexpr int32_t kRefusedLines = 100, kTurnedAwayLines = 1;
constexpr MonotonicNs kWindowNs = 10'000'000'000;

Counter suppressed_lines(MetricsRegistry* registry) {
  return registry->counter("omnibus_log_lines_suppressed_total",
                           "Log lines that clients caused and that were left out");
}

}  // namespace

const char* method_label(std::string_view method) {
  for (const char* known : {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE"}) {
    if (method == known) return known;
  }
  return "other";
}

HttpMetrics::HttpMetrics(MetricsRegistry* registry, const Clock* clock)
    : in_progress(registry->gauge("http_requests_inprogress", "HTTP requests being answered")),
      connections(registry->gauge("omnibus_http_connections", "Open HTTP connections")),
      connections_total(registry->counter("omnibus_http_connections_total", "HTTP connections accepted")),
      connections_refused(registry->counter("omnibus_http_connections_refused_total",
                                            "HTTP connections turned away at --max-connections")),
      slow_readers(registry->counter("omnibus_http_slow_readers_dropped_total",
                                     "Connections closed because their reader took no byte for too long")),
      refused_lines("lines about requests that were not served", kRefusedLines, kWindowNs, clock,
                    suppressed_lines(registry)),
      turned_away_lines("lines about connections turned away", kTurnedAwayLines, kWindowNs, clock,
                        suppressed_lines(registry)),
      registry_(registry),
      duration_(registry->histogram("http_request_duration_highr_seconds",
                                    "Time from a request's head to its last byte, all handlers, fine",
                                    kFineSeconds)) {}

Counter& HttpMetrics::requests(const std::string& handler, const char* method, int status) {
  const auto [it, fresh] = requests_.try_emplace({handler, method, status});
  if (fresh) {
    it->second =
        registry_->counter("http_requests_total", "HTTP requests answered",
                           {{"handler", handler}, {"method", method}, {"status", std::to_string(status)}});
  }
  return it->second;
}

HttpMetrics::OfHandler& HttpMetrics::of(const std::string& handler, const char* method) {
  const auto [it, fresh] = handlers_.try_emplace({handler, method});
  if (fresh) {
    OfHandler& made = it->second;
    made.duration = registry_->histogram("http_request_duration_seconds",
                                         "Time from a request's head to the last byte of its answer",
                                         kSeconds, {{"handler", handler}, {"method", method}});
    made.request_size = registry_->histogram("http_request_size_bytes", "Size of request bodies", kBytes,
                                             {{"handler", handler}});
    made.response_size = registry_->histogram("http_response_size_bytes", "Size of answers, heads included",
                                              kBytes, {{"handler", handler}});
  }
  return it->second;
}

void HttpMetrics::count(const HttpExchange& exchange) {
  const std::string handler(exchange.handler);
  const char* method = method_label(exchange.method);
  std::lock_guard lock(mutex_);
  requests(handler, method, exchange.status).add();
  const OfHandler& metrics = of(handler, method);
  metrics.duration.observe(exchange.seconds);
  metrics.request_size.observe(static_cast<double>(exchange.request_bytes));
  metrics.response_size.observe(static_cast<double>(exchange.response_bytes));
  duration_.observe(exchange.seconds);
}

}  // namespace omnibus
