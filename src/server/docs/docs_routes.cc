#include "omnibus/server/docs/docs_routes.h"

#include <memory>
#include <utility>

#include "docs_page.h"
#include "openapi.h"

namespace omnibus {
namespace {

void add_fixed_answer(const char* path, std::shared_ptr<const HttpResponse> answer, RouteTable& routes) {
  routes.add(
      {"GET", path, Scope::kInference, kPlainBodyBytes,
       [answer = std::move(answer)](const HttpRequest&, const ReplyPtr& reply) { reply->send(*answer); }});
}

}  // namespace

void add_docs_routes(const DocsConfig& config, RouteTable& routes) {
  // The answers describe themselves, too: first the routes, then what they say.
  auto document = std::make_shared<HttpResponse>();
  auto page = std::make_shared<HttpResponse>();
  add_fixed_answer("/openapi.json", document, routes);
  add_fixed_answer("/docs", page, routes);
  const Json openapi = make_openapi(config, routes);
  document->body = dump_json(openapi);
  page->content_type = "text/html; charset=utf-8";
  page->headers = {{"Content-Security-Policy", docs_page_policy()},
                   {"Referrer-Policy", "no-referrer"},
                   {"X-Frame-Options", "DENY"},
                   {"Cache-Control", "no-cache"}};
  page->body = docs_page_html(openapi);
}

}  // namespace omnibus
