// An answer of JSON, whole.
#pragma once

#include <string>
#include <vector>

#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/json_body.h"

#include "request_body.h"

namespace omnibus {

// 200; what had no effect is named in its head.
inline HttpResponse json_response(const Json& body, const std::vector<std::string>& ignored = {}) {
  HttpResponse response;
  response.body = dump_json(body);
  add_ignored_fields(response.headers, ignored);
  return response;
}

}  // namespace omnibus
