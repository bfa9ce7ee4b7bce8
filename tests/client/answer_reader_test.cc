// Streams that go on and on: what is kept of them has a bound.
#include "answer_reader.h"

#include <string>

#include <gtest/gtest.h>

namespace omnibus::client {
namespace {

const std::string kText = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";

std::string times(const std::string& event, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += event;
  return out;
}

struct Stream {
  RequestRecord record;
  int64_t outputs = 0;
  AnswerReader reader{&record, /*stream=*/true, 0, &outputs};
  explicit Stream() { reader.on_head(200, "text/event-stream"); }
};

TEST(AnswerReader, ReadsSoManyEventsAndNoMore) {
  Stream stream;
  // Events without text are cheap to read, and count all the same.
  stream.reader.on_body(times("data: [DONE]\n\n", kMostEvents - 2) + times(kText, 2), 1);
  EXPECT_TRUE(stream.record.ok()) << stream.record.error;
  EXPECT_FALSE(stream.reader.too_long());
  stream.reader.on_body(times(kText, 3), 2);
  EXPECT_TRUE(stream.reader.too_long());
  EXPECT_EQ(failure_name(stream.record), "malformed");
  EXPECT_EQ(stream.record.error, "the answer has more than 1048576 events");
  EXPECT_EQ(stream.record.outputs.size(), 2U);
  EXPECT_EQ(stream.outputs, 2);
}

// The first failure is told, but a stream that goes on behind it is left as well.
TEST(AnswerReader, StopsReadingBehindAFailure) {
  Stream stream;
  stream.reader.on_body("data: {\"error\":{\"message\":\"no luck\"}}\n\n", 1);
  stream.reader.on_body(times(kText, kMostEvents), 2);
  EXPECT_TRUE(stream.reader.too_long());
  EXPECT_EQ(stream.record.error, "no luck");
  EXPECT_TRUE(stream.record.outputs.empty());
}

}  // namespace
}  // namespace omnibus::client
