// BlockPool: the state of each KV block: used (tables hold it), cached (nobody holds it, but its content can
// be found again) or free. Knows block ids only, never requests, keys or memory.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// Not thread-safe; the engine thread owns it. All calls take constant time, and what they answer is a
// function of the calls alone. Of the free blocks the one released last is taken first, since its memory is
// the warmest; of the cached ones the one that was released first.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);  // >= 0

  struct Taken {
    BlockId id = 0;
    bool was_cached = false;  // its content is lost: whoever could find it must forget it
  };
  // A block with reference count 1, not findable: a free one, else the least recently used of the cached
  // ones; nullopt when all blocks are in use.
  std::optional<Taken> take();
  // One more holder of a used or cached block.
  void add_ref(BlockId id);
  // One holder less; after the last the block is cached if it can be found, else free.
  void release(BlockId id);
  // A used block's content can be found from now on.
  void set_findable(BlockId id);
  // The content can no longer be found: a cached block becomes free.
  void forget(BlockId id);

  int32_t total() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t free_count() const { return static_cast<int32_t>(free_.size()); }
  int32_t cached_count() const { return cached_; }
  int32_t used_count() const { return total() - available(); }
  // Blocks that take() can give.
  int32_t available() const { return free_count() + cached_; }
  int32_t ref_count(BlockId id) const { return block(id).ref_count; }
  bool is_findable(BlockId id) const { return block(id).findable; }

  // INTERNAL when a block is in two of the three sets or in none: used + free + cached = total.
  Status check_integrity() const;

 private:
  static constexpr BlockId kNone = -1;
  struct Block {
    int32_t ref_count = 0;
    bool findable = false;
    BlockId older = kNone;  // neighbours in the list of cached blocks
    BlockId newer = kNone;
  };
  const Block& block(BlockId id) const;
  Block& block(BlockId id) { return const_cast<Block&>(std::as_const(*this).block(id)); }
  void link_newest(BlockId id);
  void unlink(BlockId id);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack
  BlockId oldest_ = kNone;     // of the cached
  BlockId newest_ = kNone;
  int32_t cached_ = 0;
};

}  // namespace omnibus
