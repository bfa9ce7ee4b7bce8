// Server-sent events as OpenAI's clients read them.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/server/http/http_message.h"

namespace omnibus {

// The head of a stream: 200, text/event-stream, no caching, no proxy buffering.
HttpResponse sse_head();
// "data: <json>\n\n". `json` is one line.
std::string sse_event(std::string_view json);
// "data: [DONE]\n\n"
std::string sse_done();

}  // namespace omnibus
