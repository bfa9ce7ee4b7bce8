// Which tokens end an answer (docs/tokenizer.md): the ids that the file names, and tokens known by their
// text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include "omnibus/store/model_files/tokenizer_spec.h"

namespace omnibus::model_files {

// Token texts. The hash is seeded by the process's address layout, so a vocabulary crafted to collide is no
// worry.
class TextIndex {
 public:
  // Views into `tokens`; empty texts are left out.
  explicit TextIndex(const std::vector<std::string>& tokens);
  TokenId find(std::string_view text) const;  // kNoToken when absent
  // The first two tokens found to have the same text; none when all differ.
  std::optional<std::pair<TokenId, TokenId>> duplicate() const { return duplicate_; }

 private:
  absl::flat_hash_map<absl::string_view, TokenId> ids_;
  std::optional<std::pair<TokenId, TokenId>> duplicate_;
};

// Fills eot and eom by text where the file names none, then end_of_generation. `named` are further ids that
// the file's fim_*_token_id keys give. Tokens found by text become control tokens: they must never be
// printed, even where the file calls them normal.
void fill_end_of_generation(const TextIndex& ids, const std::vector<TokenId>& named, TokenizerSpec* spec);

}  // namespace omnibus::model_files
