// Vocabularies as files state them: consistent, or refused by key.
#include "omnibus/store/model_files/tokenizer_spec.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/store/model_files/gguf.h"

#include "dense_file.h"

namespace omnibus {
namespace {

using fakes::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<TokenizerSpec> read(const GgufWriter& file) {
  auto parsed = GgufFile::parse(file.bytes(), "vocab.gguf");
  if (!parsed.ok()) return parsed.status();
  return read_tokenizer_spec(**parsed);
}

void expect_refused(const GgufWriter& file, const std::string& key, const std::string& part,
                    StatusCode code = StatusCode::kInvalidArgument) {
  const Status status = read(file).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(status_message(status), HasSubstr("vocab.gguf: key 'tokenizer.ggml." + key + "'"));
  EXPECT_THAT(status_message(status), HasSubstr(part));
}

GgufWriter byte_file() {
  GgufWriter file;
  set_byte_vocabulary(&file);
  return file;
}

// A vocabulary of these texts, all of one kind, without merges and without named ids.
GgufWriter file_of(const std::vector<std::string>& tokens, int32_t kind = 3) {
  GgufWriter file;
  file.set_string("tokenizer.ggml.model", "gpt2");
  file.set_strings("tokenizer.ggml.tokens", tokens);
  file.set_i32s("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), kind));
  file.set_strings("tokenizer.ggml.merges", {});
  return file;
}

TEST(TokenizerSpec, ByteLevelVocabulary) {
  auto spec = read(byte_file());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, "gpt2");
  EXPECT_EQ(spec->pre, "smollm");
  EXPECT_EQ(spec->tokens.size(), 263u);
  EXPECT_EQ(spec->tokens[3 + 'A'], "A");
  EXPECT_EQ(spec->tokens[3 + ' '], "Ġ");
  EXPECT_EQ(spec->kinds[2], TokenKind::kControl);
  EXPECT_EQ(spec->kinds[3], TokenKind::kNormal);
  EXPECT_EQ(spec->merges, (std::vector<std::string>{"h e", "l l", "Ġ he", "Ġhe ll"}));
  EXPECT_THAT(spec->scores, IsEmpty());
  EXPECT_EQ(spec->bos, 1);
  EXPECT_EQ(spec->eos, 2);
  EXPECT_EQ(spec->eot, 2);  // <|im_end|>, by its text
  EXPECT_EQ(spec->eom, kNoToken);
  EXPECT_EQ(spec->unknown, 0);
  EXPECT_EQ(spec->padding, 2);
  EXPECT_FALSE(spec->add_bos);
  EXPECT_FALSE(spec->add_eos);
  EXPECT_FALSE(spec->add_space_prefix);
  EXPECT_EQ(spec->chat_template, "{{ messages[0].content }}");
  EXPECT_THAT(spec->end_of_generation, ElementsAre(0, 2));
}

TEST(TokenizerSpec, SentencePieceVocabulary) {
  GgufWriter file;
  file.set_string("tokenizer.ggml.model", "llama");
  file.set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x0A>", "▁a"});
  file.set_i32s("tokenizer.ggml.token_type", {2, 3, 3, 6, 1});
  file.set_f32s("tokenizer.ggml.scores", {0, 0, 0, 0, -1.5f});
  auto spec = read(file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->pre, "default");
  EXPECT_THAT(spec->scores, ElementsAre(0, 0, 0, 0, -1.5f));
  EXPECT_EQ(spec->kinds[3], TokenKind::kByte);
  EXPECT_EQ(spec->bos, 1);
  EXPECT_EQ(spec->eos, 2);
  EXPECT_EQ(spec->unknown, 0);
  EXPECT_TRUE(spec->add_bos);
  EXPECT_TRUE(spec->add_space_prefix);
  EXPECT_FALSE(spec->add_eos);
  EXPECT_THAT(spec->end_of_generation, ElementsAre(2));
  file.set_bool("tokenizer.ggml.add_space_prefix", false);
  file.set_bool("tokenizer.ggml.add_bos_token", false);
  file.set_bool("tokenizer.ggml.add_eos_token", true);
  spec = read(file);
  EXPECT_FALSE(spec->add_bos);
  EXPECT_FALSE(spec->add_space_prefix);
  EXPECT_TRUE(spec->add_eos);
  file.erase("tokenizer.ggml.scores");
  expect_refused(file, "scores", "missing");
  file.set_f32s("tokenizer.ggml.scores", {0, 0, 0, 0});
  expect_refused(file, "scores", "4 entries for 5 tokens");
  file.set_f32s("tokenizer.ggml.scores", {0, 0, 0, std::numeric_limits<float>::quiet_NaN(), 0});
  expect_refused(file, "scores", "token 3");
}

TEST(TokenizerSpec, DefaultIdsOnlyWhereTheVocabularyHasThem) {
  std::vector<std::string> tokens(12, "");
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::string(1, static_cast<char>('a' + i));
  EXPECT_EQ(read(file_of(tokens, 1))->eos, kNoToken);
  tokens[11] = "<|endoftext|>";
  GgufWriter falcon = file_of(tokens, 3);
  EXPECT_EQ(read(falcon)->eos, 11);
  EXPECT_EQ(read(falcon)->bos, 11);
}

TEST(TokenizerSpec, BosByDefaultForLlama3) {
  GgufWriter file = file_of({"a", "<|begin_of_text|>"});
  file.set_string("tokenizer.ggml.pre", "llama-bpe");
  EXPECT_FALSE(read(file)->add_bos);  // no bos token to add
  file.set_u32("tokenizer.ggml.bos_token_id", 1);
  EXPECT_TRUE(read(file)->add_bos);
  file.set_string("tokenizer.ggml.pre", "qwen2");
  EXPECT_FALSE(read(file)->add_bos);
}

TEST(TokenizerSpec, EndOfGeneration) {
  const auto ends = [](const std::vector<std::string>& tokens) {
    return read(file_of(tokens))->end_of_generation;
  };
  EXPECT_THAT(ends({"<|eot_id|>", "x", "<|eom_id|>", "<|end_of_text|>"}), ElementsAre(0, 2, 3));
  EXPECT_THAT(ends({"<|return|>", "<|call|>", "<|end|>"}), ElementsAre(0, 1));
  EXPECT_THAT(ends({"<|flush|>", "<|calls|>", "<|end|>"}), ElementsAre(0, 1));
  EXPECT_THAT(ends({"<|return|>", "x", "<|end|>"}), ElementsAre(0, 2));
  EXPECT_THAT(ends({"</s>", "<|tool_response>"}), ElementsAre(1));
  EXPECT_THAT(ends({"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|fim_prefix|>"}), ElementsAre(0, 1, 2));
  EXPECT_THAT(ends({"x", "<｜end▁of▁sentence｜>", "[e~[", "<turn|>"}), ElementsAre(1, 2, 3));
  GgufWriter file = file_of({"a", "b", "c", "d", "e", "f"}, 1);
  const char* keys[] = {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"};
  for (uint32_t i = 0; i < 6; ++i) file.set_u32(std::string("tokenizer.ggml.") + keys[i] + "_token_id", i);
  EXPECT_THAT(read(file)->end_of_generation, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TokenizerSpec, EndTokensBecomeControlTokens) {
  auto spec = read(file_of({"<|im_end|>", "<|file_sep|>"}, 1));
  EXPECT_EQ(spec->kinds[0], TokenKind::kControl);
  EXPECT_EQ(spec->kinds[1], TokenKind::kNormal);
  EXPECT_THAT(spec->end_of_generation, ElementsAre(0));
}

TEST(TokenizerSpec, Refusals) {
  GgufWriter file = byte_file();
  file.erase("tokenizer.ggml.model");
  expect_refused(file, "model", "missing");
  file = byte_file();
  file.set_string("tokenizer.ggml.model", "bert");
  expect_refused(file, "model", "'bert'", StatusCode::kUnimplemented);
  file = byte_file();
  file.erase("tokenizer.ggml.tokens");
  expect_refused(file, "tokens", "missing");
  file = byte_file();
  file.set_i32s("tokenizer.ggml.tokens", {1, 2});
  expect_refused(file, "tokens", "array of strings");
  file.set_strings("tokenizer.ggml.tokens", {});
  expect_refused(file, "tokens", "0 tokens");
  expect_refused(file_of({"a", "b", "", "", "b"}), "tokens", "tokens 1 and 4 are both 'b'");
  file = byte_file();
  file.set_i32s("tokenizer.ggml.token_type", {1, 1});
  expect_refused(file, "token_type", "2 entries for 263 tokens");
  for (const int32_t kind : {-1, 7}) {
    expect_refused(file_of({"a"}, kind), "token_type",
                   "token 0 has the unknown type " + std::to_string(kind));
  }
  file = byte_file();
  file.erase("tokenizer.ggml.merges");
  expect_refused(file, "merges", "missing");
  file = byte_file();
  file.set_bool("tokenizer.chat_template", true);
  EXPECT_THAT(status_message(read(file).status()), HasSubstr("'tokenizer.chat_template'"));
  file = file_of({"a"});
  file.set_bool("tokenizer.ggml.add_bos_token", true);
  expect_refused(file, "add_bos_token", "no bos token");
}

TEST(TokenizerSpec, Merges) {
  struct Case {
    const char* merge;
    const char* part;
  };
  const Case cases[] = {{"ab", "merge 1 is not a pair"},           {"a ", "merge 1 is not a pair"},
                        {" a", "merge 1 is not a pair"},           {"", "merge 1 is not a pair"},
                        {"zz e", "names 'zz', which is no token"}, {"h zz", "names 'zz', which is no token"},
                        {"e h", "names 'eh', which is no token"}};
  for (const Case& c : cases) {
    GgufWriter file = byte_file();
    file.set_strings("tokenizer.ggml.merges", {"h e", c.merge});
    expect_refused(file, "merges", c.part);
  }
  // A space is split after the first byte: "  x" is the pair (" ", "x") of a vocabulary with raw spaces.
  GgufWriter file = file_of({" ", "x", " x"});
  file.set_strings("tokenizer.ggml.merges", {"  x"});
  EXPECT_TRUE(read(file).ok()) << read(file).status();
}

TEST(TokenizerSpec, IdsOutOfRange) {
  for (const char* name :
       {"bos", "eos", "eot", "eom", "unknown", "padding", "fim_pad", "fim_rep", "fim_sep"}) {
    const std::string key = std::string(name) + "_token_id";
    for (const int64_t id : {int64_t{-1}, int64_t{263}, int64_t{0xffffffff}}) {
      GgufWriter file = byte_file();
      file.set_i64("tokenizer.ggml." + key, id);
      expect_refused(file, key, std::to_string(id) + " is not in the vocabulary of 263 tokens");
    }
  }
}

}  // namespace
}  // namespace omnibus
