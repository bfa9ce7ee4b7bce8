// ByteBpeTokenizer: byte-level BPE (tokenizer.ggml.model "gpt2"). Radford et al., "Language models are
// unsupervised multitask learners", 2019, with the pre-tokenizers of Pretokenizer.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "merge_symbols.h"
#include "merge_table.h"
#include "pretokenizer.h"
#include "special_splitting_tokenizer.h"

namespace omnibus {

class ByteBpeTokenizer final : public SpecialSplittingTokenizer {
 public:
  // The spec's lists agree in length and its ids are in range. Refuses an unknown `pre` and a merge that
  // names an absent token.
  static StatusOr<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);

 protected:
  void encode_text(std::string_view text, std::vector<TokenId>& ids) const override;

 private:
  ByteBpeTokenizer(TokenizerSpec spec, TokenBytes bytes, Pretokenizer pretokenizer, MergeTable merges);

  void index_whole_pieces();
  void encode_valid(std::string_view text, MergeWorkspace& work, std::vector<TokenId>& ids) const;
  void encode_piece(std::string_view piece, MergeWorkspace& work, std::vector<TokenId>& ids) const;
  void merge_piece(std::string_view piece, MergeWorkspace& work) const;

  Pretokenizer pretokenizer_;
  MergeTable merges_;
  std::array<TokenId, 256> byte_tokens_;  // kNoToken where the vocabulary lacks the byte
  ByteStringMap whole_pieces_;            // pieces that are known to give this one token
};

}  // namespace omnibus
