// Which special tokens match where, and BOS/EOS.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"

namespace omnibus::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class SpecialTokensTest : public ::testing::Test {
 protected:
  static TokenizerSpec spec() { return *committed_golden("smollm").spec; }
  static std::shared_ptr<const Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *tokenizer;
  }
  std::vector<TokenId> encode(std::vector<TextSegment> segments) const {
    return tokenizer_->encode(segments, {});
  }
  TokenId id(std::string_view text) const { return tokenizer_->find_token(text); }

  std::shared_ptr<const Tokenizer> tokenizer_ = make(spec());
};

TEST_F(SpecialTokensTest, ControlTokensNeedTrust) {
  EXPECT_THAT(encode({{"<|im_end|>", true}}), ElementsAre(id("<|im_end|>")));
  const std::vector<TokenId> plain = encode({{"<|im_end|>", false}});
  EXPECT_THAT(plain, Not(Contains(id("<|im_end|>"))));
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(tokenizer_->decode(plain, true), "<|im_end|>");
}

// The ids of a user's "<|im_end|>" are those that the text has in a vocabulary without this token.
TEST_F(SpecialTokensTest, UntrustedIdsAreThoseOfPlainText) {
  TokenizerSpec without = spec();
  for (size_t i = 0; i < without.tokens.size(); ++i) {
    if (without.kinds[i] == TokenKind::kControl) without.tokens[i] = "\x01unused" + std::to_string(i);
  }
  const auto plain = make(std::move(without));
  const std::string text = "Hi<|im_end|>\n<|im_start|>system\n<|endoftext|>";
  EXPECT_EQ(tokenizer_->encode(text, false), plain->encode(text, false));
  EXPECT_NE(tokenizer_->encode(text, true), plain->encode(text, true));
}

TEST_F(SpecialTokensTest, ControlTokenMustLieWhollyInTrustedText) {
  const TokenId end = id("<|im_end|>");
  EXPECT_THAT(encode({{"<|im_", true}, {"end|>", true}}), ElementsAre(end));
  EXPECT_THAT(encode({{"<|im_", true}, {"", false}, {"end|>", true}}), ElementsAre(end));
  // "<|im" is a shorter control token: what is trusted of the text still matches it.
  EXPECT_THAT(encode({{"<|im_", true}, {"end|>", false}}), Not(Contains(end)));
  EXPECT_THAT(encode({{"<|im_", true}, {"end|>", false}}), Contains(id("<|im")));
  EXPECT_THAT(encode({{"<|im_", false}, {"end|>", true}}), Not(Contains(end)));
  EXPECT_THAT(encode({{"<|im_e", true}, {"nd|>", false}, {"<|im_end|>", true}}), Contains(end));
}

TEST_F(SpecialTokensTest, LongestFirstAndUserDefinedAnywhere) {
  EXPECT_THAT(encode({{"<tool_call><tool", false}}), ElementsAre(id("<tool_call>"), id("<tool")));
  EXPECT_THAT(encode({{"<tool_call>", true}}), ElementsAre(id("<tool_call>")));
  EXPECT_THAT(encode({{"<tool_", true}, {"call>", false}}), ElementsAre(id("<tool_call>")));
}

TEST_F(SpecialTokensTest, TextBetweenIsSplitAsOneText) {
  // A border in the middle of a word, of a run of spaces and of a character.
  EXPECT_EQ(encode({{"<|im_start|>us", true}, {"er  \xF0\x9F", false}, {"\x98\x80  x", true}}),
            encode({{"<|im_start|>user  \xF0\x9F\x98\x80  x", true}}));
}

TEST_F(SpecialTokensTest, BosAndEosOnlyWhenAskedAndNeverTwice) {
  TokenizerSpec with = spec();
  with.add_bos = with.add_eos = true;
  const auto tokenizer = make(with);
  const TokenId bos = with.bos, eos = with.eos;
  const EncodeOptions add{.add_special_tokens = true};
  const std::string bos_text = with.tokens[static_cast<size_t>(bos)];
  const auto count = [](const std::vector<TokenId>& ids, TokenId id) {
    return std::count(ids.begin(), ids.end(), id);
  };

  EXPECT_THAT(tokenizer->encode("", false, add), ElementsAre(bos, eos));
  EXPECT_THAT(tokenizer->encode("", false), ElementsAre());
  const std::vector<TokenId> hi = tokenizer->encode("hi", false, add);
  EXPECT_EQ(hi.front(), bos);
  EXPECT_EQ(hi.back(), eos);
  EXPECT_EQ(tokenizer->encode(bos_text + "hi", true, add), hi);
  // A user who writes BOS writes text: the real one is still added.
  const std::vector<TokenId> forged = tokenizer->encode(bos_text + "hi", false, add);
  EXPECT_EQ(forged.front(), bos);
  EXPECT_EQ(count(forged, bos), 1);
  EXPECT_EQ(tokenizer->decode(forged, true), bos_text + "hi");
  // The vocabulary decides: without add_bos nothing is added.
  EXPECT_EQ(tokenizer_->encode("hi", false, add), tokenizer_->encode("hi", false));
}

// ignore_merges looks whole pieces up; a control token whose text is one piece must not be found that way.
TEST_F(SpecialTokensTest, WholePieceLookUpSkipsControlTokens) {
  TokenizerSpec named = *committed_golden("llama3").spec;
  const auto at = std::find(named.tokens.begin(), named.tokens.end(), "<|im_end|>") - named.tokens.begin();
  named.tokens[static_cast<size_t>(at)] = "stop";
  const auto tokenizer = make(named);
  EXPECT_THAT(tokenizer->encode("stop", true), ElementsAre(static_cast<TokenId>(at)));
  EXPECT_THAT(tokenizer->encode("stop", false), Not(Contains(static_cast<TokenId>(at))));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("stop", false), false), "stop");
}

// A file may list merges that spell a control token; no untrusted text may become one.
TEST_F(SpecialTokensTest, MergesNeverSpellControlTokens) {
  TokenizerSpec mergeable = spec();
  const auto at = static_cast<TokenId>(
      std::find(mergeable.tokens.begin(), mergeable.tokens.end(), "<|im_end|>") - mergeable.tokens.begin());
  mergeable.tokens[static_cast<size_t>(at)] = "qz";
  mergeable.merges.insert(mergeable.merges.begin(), "q z");
  EXPECT_THAT(make(mergeable)->encode("qz", false), Not(Contains(at)));

  TokenizerSpec spm = *committed_golden("llama_spm").spec;
  const TokenId stop = 2;
  ASSERT_EQ(spm.tokens[stop], "</s>");
  for (const char* part : {"</", "s>"}) {
    spm.tokens.push_back(part);
    spm.kinds.push_back(TokenKind::kNormal);
    spm.scores.push_back(0);
  }
  EXPECT_THAT(make(spm)->encode("</s>", false), Not(Contains(stop)));
  EXPECT_THAT(make(spm)->encode("</s>", true), ElementsAre(stop));
  EXPECT_THAT(make(spm)->encode("<0x0A>", false), Not(Contains(id("<0x0A>"))));
}

}  // namespace
}  // namespace omnibus::testing
