// Tokenizer: text to ids and back, equal to Hugging Face tokenizers' ids for the same vocabulary. Immutable
// after creation; all methods from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/store/model_files/tokenizer_spec.h"

namespace omnibus {

// A piece of prompt text and who wrote it. Control tokens ("<|im_end|>") are recognised in trusted pieces
// only (templates); the same characters from a user stay text. User-defined tokens match in both.
struct TextSegment {
  std::string_view text;
  bool trusted = false;
};

struct EncodeOptions {
  bool add_special_tokens =
      false;  // BOS/EOS as the vocabulary says (never a second BOS when the text begins with it)
};

class Tokenizer {
 public:
  // Refuses by name: an unknown model or pre-tokenizer.
  static StatusOr<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);
  virtual ~Tokenizer() = default;

  // The segments are tokenised as one joined text: a border changes nothing but which special tokens match.
  // Invalid UTF-8 is encoded byte by byte through the byte alphabet, losslessly where the vocabulary has all
  // bytes.
  virtual std::vector<TokenId> encode(std::span<const TextSegment> segments,
                                      const EncodeOptions& options) const = 0;
  std::vector<TokenId> encode(std::string_view text, bool trusted, const EncodeOptions& options = {}) const {
    const TextSegment segment{text, trusted};
    return encode(std::span<const TextSegment>(&segment, 1), options);
  }

  // Raw bytes of one token as decoding emits them (may be part of a UTF-8 character). Control tokens give
  // their text. `id` must be in [0, vocab_size).
  virtual std::string_view token_bytes(TokenId id) const = 0;
  // control or unknown: left out of text when special tokens are skipped.
  virtual bool is_special(TokenId id) const = 0;
  virtual TokenId find_token(std::string_view text) const = 0;  // kNoToken if absent
  virtual const TokenizerSpec& spec() const = 0;
  int32_t vocab_size() const { return static_cast<int32_t>(spec().tokens.size()); }

  // Whole text of a sequence: invalid UTF-8 becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;
};

}  // namespace omnibus
