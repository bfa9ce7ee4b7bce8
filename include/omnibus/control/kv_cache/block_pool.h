// BlockPool: which KV blocks are free and how many tables hold each of the others. Knows block ids only,
// never requests or memory.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// Not thread-safe; the engine thread owns it. The order in which blocks are handed out is a function of the
// calls alone: the block released last is taken first, since its memory is the warmest.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);  // >= 0

  // A free block with reference count 1; nullopt when none is free.
  std::optional<BlockId> take();
  // One more holder of a block in use.
  void add_ref(BlockId id);
  // One holder less; the block is free again when the last is gone.
  void release(BlockId id);

  int32_t total() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t free_count() const { return static_cast<int32_t>(free_.size()); }
  int32_t used_count() const { return total() - free_count(); }
  int32_t ref_count(BlockId id) const { return block(id).ref_count; }

  // INTERNAL when a block is in both sets or in none: used + free = total.
  Status check_integrity() const;

 private:
  struct Block {
    int32_t ref_count = 0;  // 0: free
  };
  const Block& block(BlockId id) const;
  Block& block(BlockId id) { return const_cast<Block&>(std::as_const(*this).block(id)); }

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack
};

}  // namespace omnibus
