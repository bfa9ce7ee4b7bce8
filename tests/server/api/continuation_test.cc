// continue_final_message against Hugging Face transformers (tests/oracles/continue_goldens.py), over our own
// templates: some keep what a message has, some trim it, some split it.
#include "src/server/api/continuation.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(std::string(OMNIBUS_SOURCE_DIR) + path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

RenderOptions options() {
  setenv("TZ", "UTC", 1);
  tzset();
  RenderOptions options;
  options.now_seconds = 1752743103;  // the moment of the goldens
  options.add_generation_prompt = false;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.budget.milliseconds = 60'000;
  return options;
}

Json conversation(const std::string& user, const std::string& end) {
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", user}});
  messages.push_back({{"role", "assistant"}, {"content", end}});
  return messages;
}

StatusOr<RenderedPrompt> continued(const ChatTemplate& chat_template, Json messages) {
  OMNIBUS_ASSIGN_OR_RETURN(const std::string message, mark_final_message(messages));
  Json variables;
  variables["messages"] = std::move(messages);
  variables["documents"] = Json::array();
  auto rendered = chat_template.render(variables, options());
  if (rendered.ok()) OMNIBUS_RETURN_IF_ERROR(cut_at_mark(message, *rendered));
  return rendered;
}

TEST(Continuation, EveryPromptEqualsThatOfTransformers) {
  const Json golden = parse_json(read_file("/tests/data/goldens/template/continue.json")).value();
  int equal = 0;
  for (const auto& [name, ends] : golden["templates"].items()) {
    const auto compiled = ChatTemplate::compile(read_file("/tests/data/templates/" + name));
    ASSERT_TRUE(compiled.ok()) << name;
    for (const auto& [label, expected] : ends.items()) {
      const auto got = continued(**compiled, conversation(golden["user"], golden["ends"][label]));
      EXPECT_EQ(got.ok(), !expected.is_null()) << name << " / " << label << ": " << got.status();
      if (!got.ok() || expected.is_null()) continue;
      EXPECT_EQ(got->text, expected.get<std::string>()) << name << " / " << label;
      ++equal;
    }
  }
  EXPECT_GE(equal, 70);
}

// A cut prompt is covered by its ranges as a whole one is, and what the client wrote stays the client's.
TEST(Continuation, ProvenanceIsKept) {
  const auto compiled = ChatTemplate::compile(kChatMlTemplate).value();
  const std::string end = "a <|im_end|> b";
  const auto got = continued(*compiled, conversation("hi", end)).value();
  ASSERT_FALSE(got.ranges.empty());
  size_t at = 0;
  for (const auto& range : got.ranges) {
    EXPECT_EQ(range.begin, at);
    EXPECT_GT(range.end, range.begin);
    at = range.end;
  }
  EXPECT_EQ(at, got.text.size());
  EXPECT_FALSE(got.ranges.back().trusted);
  EXPECT_EQ(got.text.substr(got.ranges.back().begin), end);
  const auto empty = continued(*compiled, conversation("hi", "")).value();
  EXPECT_TRUE(empty.ranges.back().trusted);
  EXPECT_EQ(empty.ranges.back().end, empty.text.size());
}

// Megabytes that nearly match everywhere; comparing them at each place would take half an hour.
TEST(Continuation, LongMessagesTakeNoTime) {
  const std::string message = std::string(size_t{4} << 20, 'a') + "b";
  RenderedPrompt prompt;
  prompt.text = std::string(size_t{8} << 20, 'a') + "<|assistant|>";
  const size_t begin = prompt.text.size();
  prompt.text += message + "CONTINUE_FINAL_MESSAGE_TAG <|end|>";
  prompt.ranges.push_back({.begin = 0, .end = prompt.text.size(), .trusted = false});
  ASSERT_TRUE(cut_at_mark(message, prompt).ok());
  EXPECT_EQ(prompt.text.size(), begin + message.size());
  prompt.text += "CONTINUE_FINAL_MESSAGE_TAG ";
  EXPECT_FALSE(cut_at_mark("c" + message, prompt).ok());
}

TEST(Continuation, OnlyAnAssistantsMessageIsContinued) {
  Json messages = Json::array();
  for (const char* role : {"system", "user"}) {
    messages.push_back({{"role", role}, {"content", "x"}});
    EXPECT_EQ(error_detail(mark_final_message(messages).status()).param, "continue_final_message");
  }
}

}  // namespace
}  // namespace omnibus
