#include "src/cli/answer_mailbox.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

constexpr int kUpdates = 20'000;

RequestOutput update(int i) {
  RequestOutput output;
  output.text = std::to_string(i) + " ";
  output.usage.completion_tokens = i + 1;
  if (i + 1 == kUpdates) output.finish_reason = FinishReason::kLength;
  return output;
}

std::string whole_text() {
  std::string text;
  for (int i = 0; i < kUpdates; ++i) text += update(i).text;
  return text;
}

TEST(AnswerMailbox, AReaderThatComesLateFindsAllOfIt) {
  AnswerMailbox mailbox;
  for (int i = 0; i < kUpdates; ++i) mailbox.put(update(i));
  const auto output = mailbox.take_for(std::chrono::nanoseconds(0));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, whole_text());
  EXPECT_EQ(output->finish_reason, FinishReason::kLength);
  EXPECT_EQ(output->usage.completion_tokens, kUpdates);
  EXPECT_FALSE(mailbox.take_for(std::chrono::nanoseconds(0)));
}

TEST(AnswerMailbox, JoinedPiecesAreTheTextHoweverTheThreadsRun) {
  AnswerMailbox mailbox;
  std::thread engine([&] {
    for (int i = 0; i < kUpdates; ++i) mailbox.put(update(i));
  });
  std::string text;
  for (bool finished = false; !finished;) {
    const auto output = mailbox.take_for(std::chrono::seconds(30));
    if (!output) break;
    text += output->text;
    finished = output->finish_reason.has_value();
  }
  engine.join();
  EXPECT_EQ(text, whole_text());
}

}  // namespace
}  // namespace omnibus
