#include "omnibus/server/http/sse.h"

#include <gtest/gtest.h>

#include "omnibus/server/http/json_body.h"

namespace omnibus {
namespace {

TEST(Sse, EventsAreOneDataLine) {
  EXPECT_EQ(sse_event("{}"), "data: {}\n\n");
  EXPECT_EQ(sse_done(), "data: [DONE]\n\n");
}

// Whatever a model says, its event has one line: JSON escapes line ends.
TEST(Sse, TextNeverBreaksTheFraming) {
  for (const std::string text :
       {"\n\n", "\r\n\r\n", "data: x\n\n", "a\rb", "\xe2\x80\xa8\xe2\x80\xa9", "\x0b\x0c"}) {
    const std::string event = sse_event(dump_json(Json(text)));
    ASSERT_TRUE(event.ends_with("\n\n"));
    const std::string line = event.substr(0, event.size() - 2);
    EXPECT_EQ(line.find_first_of("\r\n"), std::string::npos);
    EXPECT_EQ(parse_json(line.substr(6)).value(), Json(text));
  }
}

TEST(Sse, Head) {
  const HttpResponse head = sse_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.content_type, "text/event-stream; charset=utf-8");
}

}  // namespace
}  // namespace omnibus
