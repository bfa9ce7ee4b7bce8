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

// Not thread-safe. A key leads to one block; further blocks with the same content stand behind it as its
// copies. A block has at most one key.
class PrefixCache {
 public:
  PrefixCache(int32_t num_blocks, int32_t tokens_per_block);

  // The block that was inserted under `key` with just these tokens. A key alone is not believed: other tokens
  // under it are a miss.
  std::optional<BlockId> find(const Digest256& key, std::span<const TokenId> tokens) const;
  // The block holds the KV of `tokens` (tokens_per_block of them). False when it is not found: the key has a
  // block already, of which it is a copy from now on; or nothing changed, since under the key are other
  // tokens or the block has a key.
  bool insert(const Digest256& key, std::span<const TokenId> tokens, BlockId block);
  // Is it the block that find() answers?
  bool holds(BlockId block) const { return entry(block).role == Role::kFound; }
  bool is_copy(BlockId block) const { return entry(block).role == Role::kCopy; }
  bool has_copies(BlockId block) const { return holds(block) && entry(block).next != kNone; }
  // Forgets the block; ignored when it has no key. When it was the one to be found, its newest copy takes its
  // place and is returned.
  std::optional<BlockId> erase(BlockId block);
  void clear();
  int32_t size() const { return static_cast<int32_t>(block_of_.size()); }  // keys

  // INTERNAL when the directions disagree.
  Status check_integrity() const;

 private:
  struct FirstBytes {  // a digest is as good as any hash of it
    size_t operator()(const Digest256& key) const {
      size_t hash = 0;
      std::memcpy(&hash, key.data(), sizeof hash);
      return hash;
    }
  };
  static constexpr BlockId kNone = -1;
  enum class Role : uint8_t { kNone, kFound, kCopy };
  struct Entry {
    Role role = Role::kNone;
    Digest256 key{};
    BlockId before = kNone;  // neighbours in the list of one key, which begins with the block that is found
    BlockId next = kNone;
  };
  const Entry& entry(BlockId block) const { return entries_[static_cast<size_t>(block)]; }
  Entry& entry(BlockId block) { return entries_[static_cast<size_t>(block)]; }
  std::span<const TokenId> tokens_of(BlockId block) const;

  const size_t tokens_per_block_;
  std::unordered_map<Digest256, BlockId, FirstBytes> block_of_;
  std::vector<Entry> entries_;      // by block
  std::vector<TokenId> token_ids_;  // tokens_per_block of each block
};

}  // namespace omnibus
