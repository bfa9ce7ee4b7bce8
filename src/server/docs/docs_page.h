// The documentation as a page to read: HTML made on the server from the OpenAPI document, without scripts.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/server/http/json_body.h"

namespace omnibus {

std::string docs_page_html(const Json& openapi);
// Content-Security-Policy: nothing but the page's own style, by its hash.
std::string docs_page_policy();

}  // namespace omnibus
