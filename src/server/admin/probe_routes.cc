#include "omnibus/server/admin/probe_routes.h"

#include <string>

#include "omnibus/base/common/unavailable.h"
#include "omnibus/server/http/json_body.h"

#include "api/text_pool.h"

namespace omnibus {
namespace {

constexpr size_t kMaxScrapes = 64;

HttpResponse probe_answer(const char* what_not, const std::string& reason) {
  HttpResponse response;
  if (reason.empty()) {
    response.content_type = "text/plain; charset=utf-8";
    return response;
  }
  Json body;
  Json& error = body["error"];
  error["message"] = std::string(what_not) + reason;
  error["type"] = "unavailable_error";
  error["param"] = nullptr;
  error["code"] = 503;
  error["reason"] = reason;
  response.status = 503;
  response.headers.emplace_back("Retry-After", "1");
  response.body = dump_json(body);
  return response;
}

}  // namespace

void add_probe_routes(const Lifecycle& lifecycle, RouteTable& routes) {
  const RouteHandler ready = [&lifecycle](const HttpRequest&, const ReplyPtr& reply) {
    reply->send(probe_answer("The server is not ready: ", lifecycle.why_not_ready()));
  };
  for (const char* path : {"/health", "/v1/health", "/readyz", "/ping"}) {
    routes.add({"GET", path, Scope::kPublic, kPlainBodyBytes, ready});
  }
  routes.add({"POST", "/ping", Scope::kPublic, kPlainBodyBytes, ready});
  routes.add({"GET", "/livez", Scope::kPublic, kPlainBodyBytes,
              [&lifecycle](const HttpRequest&, const ReplyPtr& reply) {
                reply->send(probe_answer("The engine does not turn: ", lifecycle.why_not_live()));
              }});
}

MetricsPage::MetricsPage(const MetricsRegistry& metrics)
    : metrics_(metrics), pool_(std::make_unique<TextPool>(1, kMaxScrapes)) {}

MetricsPage::~MetricsPage() = default;

void MetricsPage::answer(const ReplyPtr& reply) {
  const bool taken = pool_->try_post([this, reply] {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.serialize();
    reply->send(std::move(response));
  });
  if (!taken) reply->send(probe_answer("No metrics now: ", "too many scrapes at once"));
}

void add_metrics_route(MetricsPage& page, RouteTable& routes) {
  routes.add({"GET", "/metrics", Scope::kMetrics, kPlainBodyBytes,
              [&page](const HttpRequest&, const ReplyPtr& reply) { page.answer(reply); }});
}

Status still_loading() { return unavailable_for_now("Loading model: the server is not ready yet"); }

}  // namespace omnibus
