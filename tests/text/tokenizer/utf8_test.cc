// append_valid_utf8 and normalisation against independent answers.
#include "src/text/tokenizer/utf8.h"

#include <random>

#include <gtest/gtest.h>
#include <utf8proc.h>

#include "omnibus/text/tokenizer/incremental_detokenizer.h"

#include "random_text.h"
#include "src/text/tokenizer/nfc.h"

namespace omnibus::testing {
namespace {

constexpr uint64_t kSeed = 13;
const std::string kR = "\xEF\xBF\xBD";

std::string replaced(std::string bytes) {
  std::string text;
  append_valid_utf8(bytes, text, true);
  EXPECT_EQ(bytes, "");
  return text;
}

// The examples of the Unicode standard, §3.9, tables 3-8 to 3-11.
TEST(ValidUtf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), kR + kR + kR + kR + kR + kR + kR + kR + "A");
  EXPECT_EQ(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), kR + kR + kR + kR + kR + kR + kR + kR + "A");
  EXPECT_EQ(replaced("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), kR + kR + kR + kR + kR + "A" + kR + kR + "B");
  EXPECT_EQ(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), kR + kR + kR + kR + "A");
  EXPECT_EQ(replaced("a\xE2\x82\xAC\xF0\x9F\x98\x80z"), "a\u20ac\U0001F600z");
}

TEST(ValidUtf8, EverySplitGivesTheSameText) {
  std::mt19937_64 rng(kSeed);
  const std::string alphabet = "a\x80\xBF\x9F\xC2\xC0\xE0\xE2\xED\xEF\xF0\xF1\xF4\xFF";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (size_t i = rng() % 11; i > 0; --i) bytes.push_back(alphabet[rng() % alphabet.size()]);
    const std::string whole = replaced(bytes);
    EXPECT_TRUE(is_valid_utf8(whole));
    const uint64_t cuts = rng();
    std::string held, text;
    for (size_t i = 0; i < bytes.size(); ++i) {
      held.push_back(bytes[i]);
      if (cuts >> i & 1) append_valid_utf8(held, text, false);
      EXPECT_TRUE(is_valid_utf8(text));
    }
    append_valid_utf8(held, text, true);
    EXPECT_EQ(text, whole) << "seed " << kSeed << " round " << round;
  }
}

TEST(ValidUtf8, HoldsBackOnlyWhatMayBecomeACharacter) {
  std::string bytes = "ab\xF0\x9F\x98", text;
  append_valid_utf8(bytes, text, false);
  EXPECT_EQ(text, "ab");
  EXPECT_EQ(bytes, "\xF0\x9F\x98");
  bytes = "ab\xED\xA0";  // a surrogate: no byte can make it whole
  text.clear();
  append_valid_utf8(bytes, text, false);
  EXPECT_EQ(text, "ab" + kR + kR);
  EXPECT_EQ(bytes, "");
}

TEST(ValidUtf8, FindsTheFirstInvalidByte) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = rng() % 20; i > 0; --i) append_utf8(static_cast<char32_t>(rng() % 0xD800), text);
    const size_t at = text.size();
    EXPECT_EQ(find_invalid_utf8(text, 0), at);
    text += "\xFFtail";
    EXPECT_EQ(find_invalid_utf8(text, 0), at);
    EXPECT_EQ(find_invalid_utf8(text, at + 1), text.size());
  }
}

TEST(Nfc, EqualsUtf8proc) {
  std::mt19937_64 rng(kSeed);
  const char32_t marks[] = {0x301, 0x323, 0x307, 0x308, 0x5B0, 0x64B, 0x93C, 0x3099, 0x1161, 0x11A8, 0x30A};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (size_t i = rng() % 14; i > 0; --i) {
      const uint64_t kind = rng() % 4;
      char32_t code = marks[rng() % std::size(marks)];
      if (kind == 1) code = static_cast<char32_t>('a' + rng() % 26);
      if (kind == 2) code = static_cast<char32_t>(0xA0 + rng() % 0x3000);
      if (kind == 3 && rng() % 2) code = static_cast<char32_t>(0xAC00 + rng() % 0x4FFF);
      if (code >= 0xD800 && code < 0xE000) continue;
      append_utf8(code, text);
    }
    utf8proc_uint8_t* expected = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    ASSERT_NE(expected, nullptr);
    std::string buffer;
    EXPECT_EQ(to_nfc(text, buffer), reinterpret_cast<const char*>(expected))
        << "seed " << kSeed << " round " << round;
    std::free(expected);
  }
}

// Marks in descending class order: ordering them one exchange at a time would take 10^11 exchanges.
TEST(Nfc, LongRunsOfMarksAreOrderedFast) {
  constexpr int kMarks = 400'000;
  std::string text = "q", expected = "q", buffer;
  for (int i = 0; i < kMarks; ++i) append_utf8(i < kMarks / 2 ? 0x307 : 0x323, text);  // classes 230 and 220
  for (int i = 0; i < kMarks; ++i) append_utf8(i < kMarks / 2 ? 0x323 : 0x307, expected);
  EXPECT_TRUE(to_nfc(text, buffer) == expected);
}

}  // namespace
}  // namespace omnibus::testing
