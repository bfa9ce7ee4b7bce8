// SseParser against a reference that sees the whole text at once, however the bytes are cut.
#include "omnibus/client/sse_parser.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "random_stream.h"

namespace omnibus::client {
namespace {

using Events = std::vector<std::string>;

// The standard, read line by line from the whole stream.
Events reference(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  Events events;
  std::optional<std::string> data;
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' && text[i] != '\n') {
      line += text[i];
      continue;
    }
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    if (line.empty()) {
      if (data) events.push_back(*data);
      data.reset();
    } else if (line.substr(0, line.find(':')) == "data") {
      std::string value = line.size() > 5 ? line.substr(5) : "";
      if (!value.empty() && value[0] == ' ') value.erase(0, 1);
      data = data ? *data + "\n" + value : value;
    }
    line.clear();
  }
  return events;
}

Events parsed(const std::string& text, const std::vector<size_t>& cuts) {
  Events events;
  SseParser parser([&](std::string_view data) { events.emplace_back(data); });
  size_t from = 0;
  for (const size_t cut : cuts) {
    parser.push(std::string_view(text).substr(from, cut - from));
    from = cut;
  }
  parser.push(std::string_view(text).substr(from));
  return events;
}

TEST(SseParser, AnEventThatIsTooLongIsNone) {
  const std::string most(SseParser::kMostEventBytes - 6, 'x');
  int events = 0;
  SseParser fits([&](std::string_view data) { events += data == most ? 1 : 0; });
  fits.push("data: " + most + "\n\n");
  EXPECT_EQ(events, 1);
  EXPECT_FALSE(fits.too_long());
  // In one line, and in many.
  for (const char* end : {"", "\n"}) {
    SseParser parser([](std::string_view /*data*/) { FAIL() << "an event"; });
    for (int i = 0; i < 3000 && !parser.too_long(); ++i) parser.push("data: " + std::string(1000, 'x') + end);
    EXPECT_TRUE(parser.too_long());
    EXPECT_FALSE(parser.incomplete());
    parser.push("\n\ndata: a\n\n");
  }
}

std::string random_stream_text(RandomStream& random) {
  static const std::vector<std::string> parts = {
      "data: ",    "data:", "data",      "data:  ", "event: x", ": ping", "id: 7",
      "datas: no", "a",     "{\"x\":1}", "[DONE]",  "\n",       "\n",     "\n\n",
      "\r\n",      "\r",    "\r\n\r\n",  "é",       " ",        ":",      "retry"};
  std::string text = random.below(4) == 0 ? "\xEF\xBB\xBF" : "";
  for (int64_t n = random.below(40); n > 0; --n) text += parts[static_cast<size_t>(random.below(21))];
  return text;
}

TEST(SseParser, EventsOfAStream) {
  EXPECT_EQ(parsed("data: a\n\n: ping\n\ndata: b\ndata: c\n\ndata: [DONE]\n\n", {}),
            (Events{"a", "b\nc", "[DONE]"}));
  EXPECT_EQ(parsed("data: not ended\n", {}), Events{});
  EXPECT_EQ(parsed("data\n\n", {}), Events{""});
}

TEST(SseParser, AnyTextEqualsTheReferenceHoweverItIsCut) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(seed, 0);
    const std::string text = random_stream_text(random);
    std::vector<size_t> cuts;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (random.below(3) == 0) cuts.push_back(i);
    }
    ASSERT_EQ(parsed(text, cuts), reference(text))
        << "seed " << seed << ": " << ::testing::PrintToString(text);
  }
}

TEST(SseParser, EveryCutInTwo) {
  const std::string text =
      "\xEF\xBB\xBF"
      "data: one\r\n\r\ndata: two\rdata:three\r\r: x\ndata: 4\n\n";
  const Events expected = reference(text);
  ASSERT_EQ(expected.size(), 3U);
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(parsed(text, {cut}), expected) << "cut at " << cut;
}

TEST(SseParser, KnowsThatAnEventIsNotEnded) {
  SseParser parser([](std::string_view /*data*/) {});
  EXPECT_FALSE(parser.incomplete());
  parser.push("data: x\n");
  EXPECT_TRUE(parser.incomplete());
  parser.push("\n");
  EXPECT_FALSE(parser.incomplete());
  parser.push("dat");
  EXPECT_TRUE(parser.incomplete());
}

}  // namespace
}  // namespace omnibus::client
