// The OpenAPI 3.1 document of a route table.
#pragma once

#include "omnibus/server/docs/docs_routes.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// Every route is an operation, also one that the notes say nothing about (a test demands that there is none).
Json make_openapi(const DocsConfig& config, const RouteTable& routes);

}  // namespace omnibus
