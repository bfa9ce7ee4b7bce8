// read_answer_event against a reading of the built object.
#include "omnibus/client/answer_event.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "random_stream.h"

namespace omnibus::client {
namespace {

using Json = nlohmann::json;

bool text_in(const Json& object, const char* field) {
  return object.contains(field) && object[field].is_string() && !object[field].get<std::string>().empty();
}

// The same question, asked of the object.
AnswerEvent reference(const Json& json) {
  AnswerEvent event;
  for (const Json& choice : json.value("choices", Json::array())) {
    event.has_output = event.has_output || text_in(choice, "text");
    for (const char* part : {"delta", "message"}) {
      if (!choice.contains(part) || !choice[part].is_object()) continue;
      for (const char* field : {"content", "reasoning", "reasoning_content"}) {
        event.has_output = event.has_output || text_in(choice[part], field);
      }
    }
    if (choice.contains("finish_reason") && choice["finish_reason"].is_string()) {
      if (!event.finished) event.finish_reason = choice["finish_reason"].get<std::string>();
      event.finished = true;
    }
  }
  if (json.contains("usage") && json["usage"].is_object()) {
    const Json& usage = json["usage"];
    if (usage.contains("prompt_tokens")) event.prompt_tokens = usage["prompt_tokens"].get<int64_t>();
    if (usage.contains("completion_tokens"))
      event.completion_tokens = usage["completion_tokens"].get<int64_t>();
    if (usage.contains("prompt_tokens_details")) {
      event.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
    }
  }
  event.has_error = json.contains("error") && !json["error"].is_null();
  return event;
}

Json random_chunk(RandomStream& random) {
  const auto text = [&]() -> Json {
    static const std::vector<Json> texts = {nullptr, "", " ", "é\n\"", "{}", "data"};
    return texts[static_cast<size_t>(random.below(6))];
  };
  Json chunk = {{"id", "x"}, {"created", 7}, {"finish_reason", "not here"}, {"text", "not here"}};
  chunk["choices"] = Json::array();
  for (int64_t n = random.below(3); n > 0; --n) {
    Json choice = {{"index", n}, {"logprobs", {{"content", "not here"}, {"text", Json::array({"no"})}}}};
    if (random.below(2) == 0) choice["text"] = text();
    const char* part = random.below(2) == 0 ? "delta" : "message";
    if (random.below(2) == 0)
      choice[part] = {{"role", "assistant"}, {"content", text()}, {"reasoning", text()}};
    if (random.below(3) == 0) choice["finish_reason"] = random.below(2) == 0 ? Json() : Json("stop");
    chunk["choices"].push_back(choice);
  }
  if (random.below(3) == 0) chunk["usage"] = nullptr;
  if (random.below(3) == 0) {
    chunk["usage"] = {{"prompt_tokens", random.below(99)},
                      {"completion_tokens", random.below(99)},
                      {"prompt_tokens_details", {{"cached_tokens", random.below(9)}}}};
  }
  if (random.below(6) == 0)
    chunk["error"] = random.below(2) == 0 ? Json() : Json({{"message", "m"}, {"code", 5}});
  return chunk;
}

TEST(AnswerEvent, EqualsTheReferenceForRandomChunks) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(seed, 0);
    const Json chunk = random_chunk(random);
    const auto got = read_answer_event(chunk.dump());
    ASSERT_TRUE(got) << "seed " << seed;
    const AnswerEvent want = reference(chunk);
    ASSERT_EQ(got->has_output, want.has_output) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->finished, want.finished) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->finish_reason, want.finish_reason) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->prompt_tokens, want.prompt_tokens) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->completion_tokens, want.completion_tokens) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->cached_tokens, want.cached_tokens) << "seed " << seed << ": " << chunk;
    ASSERT_EQ(got->has_error, want.has_error) << "seed " << seed << ": " << chunk;
  }
}

TEST(AnswerEvent, ToolCallsAreOutputAndErrorsHaveTheirMessage) {
  EXPECT_TRUE(read_answer_event(R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]})")
                  ->has_output);
  EXPECT_EQ(read_answer_event(R"({"error":{"code":"x","message":"full","type":"y"}})")->error, "full");
  EXPECT_EQ(read_answer_event(R"({"error":"full"})")->error, "full");
  EXPECT_FALSE(read_answer_event(R"({"error":null})")->has_error);
}

TEST(AnswerEvent, NumbersThatCountNothingAreNoUsage) {
  for (const char* n : {"-5", "9223372036854775807", "18446744073709551615", "2147483648", "1.5", "\"7\""}) {
    const auto event = read_answer_event(std::string(R"({"usage":{"completion_tokens":)") + n + "}}");
    ASSERT_TRUE(event) << n;
    EXPECT_FALSE(event->completion_tokens) << n;
  }
  EXPECT_EQ(read_answer_event(R"({"usage":{"completion_tokens":2147483647}})")->completion_tokens,
            2147483647);
}

TEST(AnswerEvent, WhatIsNoObjectIsNone) {
  for (const char* text : {"", " ", "[1]", "7", "\"x\"", "{", "{}{}", "{\"a\":}", "null", "{\"a\":1}x"}) {
    EXPECT_FALSE(read_answer_event(text)) << text;
  }
  EXPECT_FALSE(read_answer_event("{\"a\":" + std::string(2000, '[')));
  EXPECT_TRUE(read_answer_event(" {} "));
}

}  // namespace
}  // namespace omnibus::client
