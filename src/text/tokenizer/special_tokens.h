// SpecialTokens: finds the tokens that are matched in raw text, before any normalisation or splitting.
// User-defined tokens match anywhere; control and unknown tokens only where the text is trusted. Leftmost
// first, at one place the longest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "omnibus/store/model_files/tokenizer_spec.h"

#include "byte_range.h"

namespace omnibus {

class SpecialTokens {
 public:
  struct Match {
    size_t begin = 0, end = 0;
    TokenId id = kNoToken;
  };

  explicit SpecialTokens(const TokenizerSpec& spec);

  // The first match at or after `from`; id is kNoToken if there is none. `trusted` is in ascending order
  // without overlaps or touching borders; a control token must lie wholly within one of its ranges. A caller
  // that goes through a text passes the same `trusted_index` (0 at first) each time.
  Match find(std::string_view text, size_t from, std::span<const ByteRange> trusted,
             size_t& trusted_index) const;

 private:
  // A trie; the children of a node are a linked list.
  struct Node {
    uint8_t byte = 0;
    int32_t first_child = -1, next_sibling = -1;
    TokenId anywhere = kNoToken;      // a user-defined token ends here
    TokenId when_trusted = kNoToken;  // a control or unknown token ends here
  };

  void add(std::string_view text, TokenId id, bool needs_trust);
  int32_t child(int32_t node, uint8_t byte) const;
  Match longest_at(std::string_view text, size_t begin, size_t trusted_end) const;

  std::vector<Node> nodes_;
  std::array<int32_t, 256> roots_;
};

}  // namespace omnibus
