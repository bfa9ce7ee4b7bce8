// SpmTokenizer: SentencePiece's BPE (tokenizer.ggml.model "llama"). Kudo and Richardson, "SentencePiece: a
// simple and language independent subword tokenizer and detokenizer", 2018. Merges are not in the file: they
// follow from the tokens' scores.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "merge_symbols.h"
#include "merge_table.h"
#include "special_splitting_tokenizer.h"

namespace omnibus {

class SpmTokenizer final : public SpecialSplittingTokenizer {
 public:
  // The spec's lists of tokens and kinds agree in length and its ids are in range. Refuses scores of another
  // length and byte tokens that do not read "<0xXX>".
  static StatusOr<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);

 protected:
  void encode_text(std::string_view text, std::vector<TokenId>& ids) const override;

 private:
  SpmTokenizer(TokenizerSpec spec, TokenBytes bytes, std::array<TokenId, 256> byte_tokens);

  void index_pieces();
  void encode_word(std::string_view word, MergeWorkspace& work, size_t section,
                   std::vector<TokenId>& ids) const;
  void merge_word(std::string_view word, MergeWorkspace& work) const;
  void append_fallback(std::string_view character, size_t section, std::vector<TokenId>& ids) const;

  std::array<TokenId, 256> byte_tokens_;  // kNoToken where the vocabulary lacks the byte
  ByteStringMap pieces_;                  // stored text -> id, of tokens that merging may reach
  std::array<TokenId, 128> ascii_;        // the same of one ASCII character, kNoToken if absent
  ByteStringMap whole_words_;             // words that are known to give this one token
  MergeTable merges_;
  bool words_are_independent_ = true;  // no token spans a border between words
};

}  // namespace omnibus
