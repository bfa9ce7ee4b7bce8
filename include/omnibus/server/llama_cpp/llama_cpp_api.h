// llama-server's native API: /completion, /tokenize's siblings, /props, /slots and what its clients look for
// beside them. Facts after llama.cpp b11434.
#pragma once

#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// `core` outlives `routes`.
void add_llama_cpp_routes(ApiCore& core, RouteTable& routes);

// OpenAI's error object with llama.cpp's types (authentication_error, exceed_context_size_error, ...).
HttpResponse render_llama_cpp_error(const Status& error, std::string_view path);

// Whether the path is one of llama.cpp's own, for errors in front of the handlers.
bool is_llama_cpp_path(std::string_view path);

}  // namespace omnibus
