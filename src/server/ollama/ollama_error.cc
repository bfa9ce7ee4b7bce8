#include <algorithm>
#include <string>

#include "omnibus/server/http/json_body.h"
#include "omnibus/server/ollama/ollama_api.h"

namespace omnibus {

HttpResponse render_ollama_error(const Status& error, std::string_view /*path*/) {
  const ErrorDetail detail = error_detail(error);
  Json body;
  body["error"] = status_message(error);
  HttpResponse response;
  response.status = detail.http == 429 ? 503 : detail.http;
  response.body = dump_json(body);
  if (response.status == 503) {
    response.headers.emplace_back("Retry-After",
                                  std::to_string(std::max<int64_t>(1, (detail.retry_after_ms + 999) / 1000)));
  }
  return response;
}

}  // namespace omnibus
