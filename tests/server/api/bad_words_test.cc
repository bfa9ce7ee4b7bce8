#include "src/server/api/bad_words.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using Sequences = std::vector<std::vector<TokenId>>;

// A vocabulary of words: the longest that a text begins with is its next token; what none begins is left out.
class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(std::vector<std::string> words) { spec_.tokens = std::move(words); }
  std::vector<TokenId> encode(std::span<const TextSegment> segments, const EncodeOptions&) const override {
    std::vector<TokenId> ids;
    for (std::string_view rest = segments[0].text; !rest.empty();) {
      TokenId best = kNoToken;
      for (TokenId id = 0; id < vocab_size(); ++id) {
        const std::string& token = spec_.tokens[static_cast<size_t>(id)];
        if (rest.starts_with(token) && (best == kNoToken || token.size() > token_bytes(best).size()))
          best = id;
      }
      if (best != kNoToken) ids.push_back(best);
      rest.remove_prefix(best == kNoToken ? 1 : token_bytes(best).size());
    }
    return ids;
  }
  std::string_view token_bytes(TokenId id) const override { return spec_.tokens[static_cast<size_t>(id)]; }
  bool is_special(TokenId) const override { return false; }
  TokenId find_token(std::string_view) const override { return kNoToken; }
  const TokenizerSpec& spec() const override { return spec_; }

 private:
  TokenizerSpec spec_;
};

TEST(BadWords, WithAndWithoutASpaceInFront) {
  //                           0    1    2    3      4       5
  const WordTokenizer tokenizer({" ", "a", "b", " a", "ab", " ab"});
  EXPECT_EQ(bad_word_sequences(tokenizer, {"a"}), (Sequences{{1}, {3}}));
  EXPECT_EQ(bad_word_sequences(tokenizer, {"ab"}), (Sequences{{4}, {5}}));
  // A space in the word says nothing: both spellings are meant.
  EXPECT_EQ(bad_word_sequences(tokenizer, {"  ab"}), (Sequences{{4}, {5}}));
  EXPECT_EQ(bad_word_sequences(tokenizer, {"ba"}), (Sequences{{2, 1}}));  // " ba" is one token more
  EXPECT_EQ(bad_word_sequences(tokenizer, {"abb", "b"}), (Sequences{{4, 2}, {5, 2}, {2}}));
  EXPECT_EQ(bad_word_sequences(tokenizer, {" "}), (Sequences{{0}}));
  EXPECT_EQ(bad_word_sequences(tokenizer, {}), Sequences{});
}

TEST(BadWords, WithoutTokens) {
  const WordTokenizer tokenizer({"a", "ab"});
  // Nothing of it is in the vocabulary: the engine refuses such a sequence by name.
  EXPECT_EQ(bad_word_sequences(tokenizer, {"x", "a", "\xf0\x9f"}), (Sequences{{}, {0}, {}}));
}

}  // namespace
}  // namespace omnibus
