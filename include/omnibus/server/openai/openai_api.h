// OpenAI's API, and vLLM's extensions of it.
#pragma once

#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// The error object of OpenAI's API (docs/design.md, API), with Retry-After where the status carries it.
HttpResponse render_openai_error(const Status& error, std::string_view path);

void add_openai_routes(ApiCore& core, RouteTable& routes);

}  // namespace omnibus
