// SpecialSplittingTokenizer: what all tokenizers share. Joins the segments, cuts out special tokens, adds BOS
// and EOS; the text between special tokens is the derived class's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/text/tokenizer/tokenizer.h"

#include "byte_string_map.h"
#include "special_tokens.h"
#include "token_bytes.h"

namespace omnibus {

class SpecialSplittingTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::span<const TextSegment> segments,
                              const EncodeOptions& options) const final;
  std::string_view token_bytes(TokenId id) const final { return bytes_[id]; }
  bool is_special(TokenId id) const final;
  TokenId find_token(std::string_view text) const final { return by_text_.find(text); }
  const TokenizerSpec& spec() const final { return spec_; }

 protected:
  // `bytes[id]` is what token id decodes to.
  SpecialSplittingTokenizer(TokenizerSpec spec, TokenBytes bytes);

  // Appends the ids of text that lies between special tokens. Not empty.
  virtual void encode_text(std::string_view text, std::vector<TokenId>& ids) const = 0;

 private:
  TokenizerSpec spec_;
  TokenBytes bytes_;
  SpecialTokens specials_;
  ByteStringMap by_text_;
};

// Whether text may turn into this token other than by naming it as a special token.
inline bool is_plain_kind(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined || kind == TokenKind::kUndefined;
}

}  // namespace omnibus
