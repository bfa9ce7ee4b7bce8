#include "omnibus/server/http/sse.h"

namespace omnibus {

HttpResponse sse_head() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

std::string sse_event(std::string_view json) {
  std::string event;
  event.reserve(json.size() + 8);
  event += "data: ";
  event += json;
  event += "\n\n";
  return event;
}

std::string sse_done() { return "data: [DONE]\n\n"; }

}  // namespace omnibus
