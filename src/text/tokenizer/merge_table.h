// MergeTable: which adjacent tokens join to which token, and in what order (rank 0 first).
#pragma once

#include <cstdint>
#include <vector>

#include "omnibus/base/common/ids.h"

namespace omnibus {

struct Merge {
  TokenId left = kNoToken, right = kNoToken, result = kNoToken;
};

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  // The index in `merges` is the rank. Of the same pair named twice the last counts, as in Hugging Face's
  // tokenizers. Every result must be longer than its halves (the order of merge_symbols relies on it).
  explicit MergeTable(std::vector<Merge> merges = {});

  // Rank of the pair, kNoRank if it does not join. Negative ids (no token) never join.
  uint32_t rank(TokenId left, TokenId right) const {
    if ((left | right) < 0) return kNoRank;
    const uint64_t key = key_of(left, right);
    for (size_t i = slot_of(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].rank;
      if (slots_[i].key == kEmpty) return kNoRank;
    }
  }
  const Merge& merge(uint32_t rank) const { return merges_[rank]; }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    uint32_t rank = kNoRank;
  };
  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 32) & mask_; }

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

}  // namespace omnibus
