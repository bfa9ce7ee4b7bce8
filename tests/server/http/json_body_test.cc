#include "omnibus/server/http/json_body.h"

#include <cmath>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string object_of(int keys) {
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  return text + "}";
}

TEST(JsonBody, NothingFollowsANul) {
  for (const std::string_view text :
       {std::string_view("2\0junk", 6), std::string_view("{}\0", 3), std::string_view("{}\0{}", 5),
        std::string_view("\0", 1), std::string_view("\0{}", 3), std::string_view("[1,\0]", 5)}) {
    EXPECT_FALSE(parse_json(text).ok()) << text.size();
  }
  EXPECT_TRUE(parse_json("[\"\\u0000\"]").ok());
}

TEST(JsonBody, DepthLimit) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)).ok());
  EXPECT_FALSE(parse_json(nested(kMaxJsonDepth + 1)).ok());
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects).ok());
}

TEST(JsonBody, KeyLimit) {
  EXPECT_TRUE(parse_json(object_of(kMaxJsonKeys)).ok());
  EXPECT_FALSE(parse_json(object_of(kMaxJsonKeys + 1)).ok());
}

TEST(JsonBody, KeysOfAllObjectsTogetherAreBounded) {
  std::string text = "[" + object_of(8000);
  for (int i = 0; i < 10; ++i) text += "," + object_of(8000);
  EXPECT_FALSE(parse_json(text + "]").ok());
}

TEST(JsonBody, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "nul",
                           "NaN",
                           "Infinity",
                           "-Infinity",
                           "1e999",
                           "-1e999",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "'a'",
                           "\"a",
                           "{\"a\":1,}",
                           "[1,]",
                           "{a:1}",
                           "1 2",
                           "{} {}",
                           "// x\n1",
                           "\"\\x41\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\xff\"",
                           "\"\xc3\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xc0\x80\"",
                           "\xef\xbb\xbf{}",
                           "\"a\nb\""}) {
    const auto value = parse_json(text);
    EXPECT_FALSE(value.ok()) << text;
    EXPECT_EQ(error_detail(value.status()).http, 400);
  }
  EXPECT_FALSE(parse_json(std::string_view("\"a\0b\"", 5)).ok());
}

TEST(JsonBody, ErrorsDoNotQuoteTheBody) {
  const auto value = parse_json("{\"password\": \"hunter2\" oops");
  EXPECT_EQ(status_message(value.status()).find("hunter2"), std::string::npos);
}

TEST(JsonBody, KeepsOrderAndTheLastOfEqualKeys) {
  const auto value = parse_json(R"({"b":1,"a":2,"b":3})");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(dump_json(*value), R"({"b":3,"a":2})");
}

TEST(JsonBody, RoundTrip) {
  for (const char* text :
       {R"({"a":[1,-1,0.1,1e-7,18446744073709551615,-9223372036854775808],"b":null,"c":true})",
        R"(["é","漢","😀","\u0000","\"\\/"])", "[]", "{}", "\"\"", "0.1"}) {
    const auto value = parse_json(text);
    ASSERT_TRUE(value.ok()) << text;
    const auto again = parse_json(dump_json(*value));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *value);
  }
}

TEST(JsonBody, WritesNoInvalidUtf8AndNoNan) {
  EXPECT_EQ(dump_json(Json(std::string("a\xff"))), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(dump_json(Json(std::nan(""))), "null");
  EXPECT_EQ(dump_json(Json(HUGE_VAL)), "null");
}

TEST(JsonBody, QuotesAreCutAtACharacter) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "漢";
  const std::string quoted = quote_value(Json(text));
  EXPECT_LE(quoted.size(), 203U);
  EXPECT_TRUE(quoted.ends_with("..."));
  EXPECT_EQ(dump_json(Json(quoted)).find("\xef\xbf\xbd"), std::string::npos);
  EXPECT_EQ(quote_value(Json(5)), "5");
}

TEST(JsonBody, ErrorsSayWhatIsWrong) {
  const auto says = [](std::string_view text) { return std::string(parse_json(text).status().message()); };
  EXPECT_EQ(says(""), "Body is not JSON: the body is empty");
  EXPECT_EQ(says(" \n"), "Body is not JSON: the body is empty");
  EXPECT_EQ(says("{\"a\":\"\xff\"}"), "Body is not JSON: invalid UTF-8 at byte 7");
  EXPECT_EQ(says("{\"a\":]"), "Body is not JSON: syntax error at byte 6");
}

TEST(JsonBody, ANumberOutOfRangeNamesItsField) {
  const auto field = [](std::string_view text) { return error_detail(parse_json(text).status()).param; };
  EXPECT_EQ(field(R"({"n":1,"temperature":1e999})"), "temperature");
  EXPECT_EQ(field(R"({"a":{"b":2},"options":{"top_k":1,"seed":-1e999}})"), "options.seed");
  EXPECT_EQ(field(R"({"messages":[{"role":1e999}]})"), "messages");
  EXPECT_EQ(field("[1e999]"), "");
  EXPECT_EQ(field(R"({"options":{")" + std::string(100'000, 'x') + R"(":1e999}})"), "options");
}

}  // namespace
}  // namespace omnibus
