// TokenizerSpec: a vocabulary and its rules as plain values, read from a model file and handed to Tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

class GgufFile;

enum class TokenKind : uint8_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct TokenizerSpec {
  std::string model;                // "gpt2" (byte-level BPE) or "llama" (SPM)
  std::string pre;                  // tokenizer.ggml.pre, "default" when absent
  std::vector<std::string> tokens;  // id -> text as stored
  std::vector<TokenKind> kinds;     // same length
  std::vector<float> scores;        // SPM only
  std::vector<std::string> merges;  // BPE only, "a b", best first
  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unknown = kNoToken,
          padding = kNoToken;
  bool add_bos = false, add_eos = false, add_space_prefix = false;
  std::vector<TokenId> end_of_generation;  // sorted; the rules of docs/tokenizer.md
  std::string chat_template;               // empty when the file has none
};

// Lengths, kinds, ids and merges are checked here: what Tokenizer gets is consistent.
StatusOr<TokenizerSpec> read_tokenizer_spec(const GgufFile& file);

}  // namespace omnibus
