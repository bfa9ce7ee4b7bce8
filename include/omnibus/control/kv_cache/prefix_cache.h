// PrefixCache: which block of one KV group holds the KV of which tokens. Pure lookup: how long a block lives
// is BlockPool's business.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/sha256.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// Not thread-safe. One key has at most one block, one block at most one key.
class PrefixCache {
 public:
  PrefixCache(int32_t num_blocks, int32_t tokens_per_block);

  // The block that was inserted under `key` with just these tokens. A key alone is not believed: other tokens
  // under it are a miss.
  std::optional<BlockId> find(const Digest256& key, std::span<const TokenId> tokens) const;
  // The block holds the KV of `tokens` (tokens_per_block of them). False, and nothing changed, when the key
  // or the block is taken: the first writer wins.
  bool insert(const Digest256& key, std::span<const TokenId> tokens, BlockId block);
  bool holds(BlockId block) const { return held_[static_cast<size_t>(block)]; }
  void erase(BlockId block);  // ignored when it does not hold it
  int32_t size() const { return static_cast<int32_t>(block_of_.size()); }

  // INTERNAL when the two directions disagree.
  Status check_integrity() const;

 private:
  struct FirstBytes {  // a digest is as good as any hash of it
    size_t operator()(const Digest256& key) const {
      size_t hash = 0;
      std::memcpy(&hash, key.data(), sizeof hash);
      return hash;
    }
  };
  std::span<const TokenId> tokens_of(BlockId block) const;

  const size_t tokens_per_block_;
  std::unordered_map<Digest256, BlockId, FirstBytes> block_of_;
  std::vector<bool> held_;          // by block
  std::vector<Digest256> keys_;     // by block
  std::vector<TokenId> token_ids_;  // tokens_per_block of each block
};

}  // namespace omnibus
