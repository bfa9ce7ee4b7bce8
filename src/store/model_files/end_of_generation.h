// Which tokens end an answer (docs/tokenizer.md): the ids that the file names, and tokens known by their
// text.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "omnibus/store/model_files/tokenizer_spec.h"

namespace omnibus::model_files {

// Token texts, sorted: no crafted vocabulary can make it slow, as it could a hash table of known seed.
class TextIndex {
 public:
  // Views into `tokens`; empty texts are left out. Equal texts stay, in the order of their ids.
  explicit TextIndex(const std::vector<std::string>& tokens);
  TokenId find(std::string_view text) const;  // kNoToken when absent
  const std::vector<std::pair<std::string_view, TokenId>>& sorted() const { return sorted_; }

 private:
  std::vector<std::pair<std::string_view, TokenId>> sorted_;
};

// Fills eot and eom by text where the file names none, then end_of_generation. `named` are further ids that
// the file's fim_*_token_id keys give. Tokens found by text become control tokens: they must never be
// printed, even where the file calls them normal.
void fill_end_of_generation(const TextIndex& ids, const std::vector<TokenId>& named, TokenizerSpec* spec);

}  // namespace omnibus::model_files
