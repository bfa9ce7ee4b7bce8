#include "error_json.h"

#include <fmt/format.h>

#include "omnibus/server/http/json_body.h"
#include "omnibus/server/openai/openai_api.h"

namespace omnibus {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json error_json(const Status& error) {
  const ErrorDetail detail = error_detail(error);
  Json body;
  body["error"]["message"] = status_message(error);
  body["error"]["type"] = detail.type;
  body["error"]["param"] = text_or_null(detail.param);
  body["error"]["code"] = text_or_null(detail.code);
  return body;
}

HttpResponse render_openai_error(const Status& error, std::string_view /*path*/) {
  const ErrorDetail detail = error_detail(error);
  HttpResponse response;
  response.status = detail.http;
  response.body = dump_json(error_json(error));
  if (detail.retry_after_ms > 0) {
    response.headers.emplace_back("Retry-After", std::to_string((detail.retry_after_ms + 999) / 1000));
    response.headers.emplace_back("retry-after-ms", std::to_string(detail.retry_after_ms));
  } else if (detail.http == 503) {
    response.headers.emplace_back("Retry-After", "1");
  } else if (detail.http == 504) {
    // OpenAI's clients try again after any status from 500; who set a deadline has no time for that.
    response.headers.emplace_back("x-should-retry", "false");
  }
  return response;
}

}  // namespace omnibus
