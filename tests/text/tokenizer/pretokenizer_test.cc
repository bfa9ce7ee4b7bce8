// Pieces, looked at directly: ids cannot tell pieces apart where no merge crosses the border.
#include "src/text/tokenizer/pretokenizer.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"
#include "random_text.h"

namespace omnibus::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(std::string_view pre, std::string_view text) {
  const auto pretokenizer = Pretokenizer::create(pre);
  EXPECT_TRUE(pretokenizer.ok()) << pretokenizer.status();
  std::vector<std::string> out;
  pretokenizer->split(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

TEST(Pretokenizer, CutsAsTheFamilyDoes) {
  const std::string text = "I'LL pay 12345 €\r\n\n  now";
  EXPECT_THAT(pieces("gpt-2", text), ElementsAre("I", "'", "LL", " pay", " 12345", " €", "\r\n\n ", " now"));
  EXPECT_THAT(pieces("smollm", text),
              ElementsAre("I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5", " €", "\r\n\n ", " now"));
  EXPECT_THAT(pieces("llama-bpe", text),
              ElementsAre("I", "'LL", " pay", " ", "123", "45", " €\r\n\n", " ", " now"));
  EXPECT_THAT(pieces("qwen2", text),
              ElementsAre("I", "'LL", " pay", " ", "1", "2", "3", "4", "5", " €\r\n\n", " ", " now"));
  EXPECT_THAT(pieces("default", "a+b 12345!"), ElementsAre("a", "+", "b", " ", "123", "45", "!"));
  EXPECT_THAT(pieces("qwen35", "e\u0301a"), ElementsAre("e\u0301a"));
  EXPECT_THAT(pieces("qwen2", "e\u0301a"), ElementsAre("e", "\u0301a"));
}

// White_Space of Unicode: NEL, the no-break and ideographic spaces are in it; U+180E and U+200B are not.
TEST(Pretokenizer, SpaceIsUnicodeWhiteSpace) {
  for (const char* space :
       {"\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u3000", "\x0b", "\x0c"}) {
    EXPECT_THAT(pieces("gpt-2", "!" + std::string(space) + "!"), ElementsAre("!", space, "!"));
  }
  for (const char* other : {"\u180e", "\u200b", "\ufeff", "\x1c", "\x1f"}) {
    const std::string text = "!" + std::string(other) + "!";
    EXPECT_THAT(pieces("gpt-2", text), ElementsAre(text));
  }
}

TEST(Pretokenizer, PiecesJoinToTheText) {
  constexpr uint64_t kSeed = 17;
  std::mt19937_64 rng(kSeed);
  const std::vector<std::string>& strings = committed_golden("gpt2").strings;
  for (const char* pre : {"default", "gpt-2", "llama-bpe", "dbrx", "qwen2", "qwen35", "smollm"}) {
    const auto pretokenizer = Pretokenizer::create(pre);
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_text(rng, strings, 1 + rng() % 6);
      if (!is_valid_utf8(text)) continue;
      std::string joined;
      pretokenizer->split(text, [&](std::string_view piece) {
        EXPECT_FALSE(piece.empty());
        EXPECT_TRUE(is_valid_utf8(piece)) << "seed " << kSeed << " " << pre << " '" << text << "'";
        joined += piece;
      });
      EXPECT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace omnibus::testing
