// Vocabularies that must be refused, with a message that names the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"

namespace omnibus::testing {
namespace {

using ::testing::HasSubstr;

std::string refusal(const TokenizerSpec& spec) {
  const auto tokenizer = Tokenizer::create(spec);
  return tokenizer.ok() ? "accepted" : status_message(tokenizer.status());
}

TokenizerSpec bpe() { return *committed_golden("gpt2").spec; }
TokenizerSpec spm() { return *committed_golden("llama_spm").spec; }

TEST(CreateTokenizer, NamesUnknownModelAndPreTokenizer) {
  TokenizerSpec spec = bpe();
  spec.model = "rwkv";
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.model: unknown tokenizer 'rwkv'"));
  EXPECT_THAT(refusal(spec), HasSubstr("gpt2, llama"));
  spec = bpe();
  spec.pre = "klingon";
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.pre: unknown pre-tokenizer 'klingon'"));
  EXPECT_THAT(refusal(spec), HasSubstr("llama-bpe"));
  EXPECT_EQ(Tokenizer::create(spec).status().code(), StatusCode::kUnimplemented);
}

TEST(CreateTokenizer, NamesBadMerges) {
  TokenizerSpec spec = bpe();
  spec.merges[3] = "zz qq";
  EXPECT_THAT(refusal(spec), HasSubstr("merges[3] 'zz qq': 'zz' is not in tokenizer.ggml.tokens"));
  for (const char* text : {"", " ", "a", "ab", "a ", " a"}) {
    spec.merges[3] = text;
    EXPECT_THAT(refusal(spec), HasSubstr("merges[3] '" + std::string(text) + "': not two tokens"));
  }
  // The result is missing though both halves are there.
  spec.merges[3] = "\xC4\x80 \xC4\x80";
  EXPECT_THAT(refusal(spec), HasSubstr("merges[3]"));
}

TEST(CreateTokenizer, NamesListsThatDisagreeAndIdsOutOfRange) {
  TokenizerSpec spec = bpe();
  spec.kinds.pop_back();
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.token_type"));
  spec = bpe();
  spec.tokens.clear();
  spec.kinds.clear();
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.tokens is empty"));
  spec = bpe();
  spec.bos = static_cast<TokenId>(spec.tokens.size());
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.bos_token_id"));
  spec = bpe();
  spec.eos = -2;
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.eos_token_id is -2"));
  spec = spm();
  spec.scores.pop_back();
  EXPECT_THAT(refusal(spec), HasSubstr("tokenizer.ggml.scores"));
  for (const char* text : {"<0x0G>", "<0x1>", "0x00", "<0x123>", "<0x-1>"}) {
    spec = spm();
    spec.tokens[13] = text;
    EXPECT_THAT(refusal(spec), HasSubstr("tokens[13] '" + std::string(text) + "' is of type byte"));
  }
}

TEST(CreateTokenizer, IdsOutsideTheVocabularyDecodeToNothing) {
  const auto tokenizer = make_tokenizer(committed_golden("gpt2"));
  EXPECT_EQ(tokenizer->token_bytes(-1), "");
  EXPECT_EQ(tokenizer->token_bytes(tokenizer->vocab_size()), "");
  EXPECT_FALSE(tokenizer->is_special(tokenizer->vocab_size()));
  EXPECT_EQ(tokenizer->find_token("no such token"), kNoToken);
}

}  // namespace
}  // namespace omnibus::testing
