#include "src/server/api/logprob_json.h"

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

PositionLogprobs position(std::string bytes, TokenId id = 1) {
  PositionLogprobs p;
  p.sampled = {id, -0.5F};
  p.token_bytes = std::move(bytes);
  return p;
}

// However a text is cut into tokens, a token that begins a character has the offset of that character, and
// one that begins inside of it, too.
TEST(LegacyLogprobs, OffsetsUnderEverySplit) {
  const std::string text = "aé漢😀z";
  std::vector<int64_t> offset_of_byte;
  int64_t characters = -1;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++characters;
    offset_of_byte.push_back(characters);
  }
  for (uint32_t cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
    LegacyLogprobs logprobs(false);
    std::vector<int64_t> expected;
    for (size_t start = 0, end = 1; start < text.size(); end = start + 1) {
      while (end < text.size() && (cuts >> (end - 1) & 1U) == 0) ++end;
      expected.push_back(offset_of_byte[start]);
      logprobs.add(position(text.substr(start, end - start)), true);
      start = end;
    }
    EXPECT_EQ(logprobs.take()["text_offset"], Json(expected)) << cuts;
  }
}

TEST(LegacyLogprobs, TheSampledTokenIsAlwaysThere) {
  PositionLogprobs p = position("x");
  p.top = {{2, -0.1F}, {3, -0.2F}};
  p.top_bytes = {"y", "z"};
  LegacyLogprobs logprobs(false);
  logprobs.add(p, true);
  const Json out = logprobs.take();
  EXPECT_EQ(out["top_logprobs"][0].size(), 3U);
  EXPECT_TRUE(out["top_logprobs"][0].contains("x"));
  EXPECT_TRUE(logprobs.take()["tokens"].empty());
}

TEST(LegacyLogprobs, EqualTextsKeepTheLikelier) {
  PositionLogprobs p = position("\xff", 2);
  p.top = {{3, -0.1F}, {2, -0.5F}};
  p.top_bytes = {"\xfe", "\xff"};
  LegacyLogprobs by_text(false), by_id(true);
  by_text.add(p, true);
  by_id.add(p, true);
  const Json top = by_text.take()["top_logprobs"][0];
  EXPECT_EQ(top.size(), 1U);
  EXPECT_FLOAT_EQ(top["\xef\xbf\xbd"].get<float>(), -0.1F);
  EXPECT_EQ(by_id.take()["top_logprobs"][0].size(), 2U);
}

TEST(LegacyLogprobs, FirstOfAPromptHasNoValue) {
  LegacyLogprobs logprobs(false);
  logprobs.add_outside_text(position("<s>"));
  logprobs.add(position("a"), false);
  const Json out = logprobs.take();
  EXPECT_EQ(out["token_logprobs"], Json::parse("[null,null]"));
  EXPECT_EQ(out["text_offset"], Json::parse("[0,0]"));
}

// Every token of a large vocabulary as an alternative, at many positions: work that grows with the square of
// the vocabulary would take minutes.
TEST(WideLogprobs, TakeTimeThatGrowsWithTheirNumber) {
  constexpr TokenId kVocabulary = 150'000;
  constexpr size_t kPositions = 4;
  PositionLogprobs wide = position("t7", 7);
  wide.rank = 8;
  for (TokenId id = 0; id < kVocabulary; ++id) {
    wide.top.push_back({id, -0.001F * static_cast<float>(id)});
    wide.top_bytes.push_back("t" + std::to_string(id));
  }
  LegacyLogprobs legacy(false);
  for (size_t i = 0; i < kPositions; ++i) legacy.add(wide, true);
  const Json tops = legacy.take()["top_logprobs"];
  const Json prompt = prompt_logprobs_json(std::vector(kPositions, wide), kVocabulary);
  ASSERT_EQ(tops.size(), kPositions);
  ASSERT_EQ(prompt.size(), kPositions);
  for (size_t i = 0; i < kPositions; ++i) {
    ASSERT_EQ(tops[i].size(), static_cast<size_t>(kVocabulary));
    ASSERT_EQ(prompt[i].size(), static_cast<size_t>(kVocabulary));
    // In order, the sampled one first in a prompt.
    EXPECT_EQ(std::prev(tops[i].end()).key(), "t149999");
    EXPECT_EQ(prompt[i].begin().key(), "7");
    EXPECT_EQ(prompt[i].begin().value()["rank"], 8);
    EXPECT_EQ(std::prev(prompt[i].end()).key(), "149999");
  }
}

TEST(ChatLogprobs, BytesAreTheTokens) {
  const Json out = chat_logprobs({position("\xf0\x9f", 7)}, false);
  EXPECT_EQ(out[0]["bytes"], Json::parse("[240,159]"));
  EXPECT_EQ(out[0]["token"], "\xef\xbf\xbd");
  EXPECT_EQ(out[0]["top_logprobs"], Json::array());
  EXPECT_EQ(chat_logprobs({position("a", 7)}, true)[0]["token"], "token_id:7");
}

}  // namespace
}  // namespace omnibus
