// BlockTable: the blocks of one request in one KV group, in order of the tokens they hold.
#pragma once

#include <cstdint>
#include <vector>

#include "omnibus/base/common/ids.h"

namespace omnibus {

class BlockTable {
 public:
  explicit BlockTable(int32_t tokens_per_block) : tokens_per_block_(tokens_per_block) {}

  void append(BlockId id) { blocks_.push_back(id); }
  const std::vector<BlockId>& blocks() const { return blocks_; }
  int64_t capacity_tokens() const { return static_cast<int64_t>(blocks_.size()) * tokens_per_block_; }
  // Blocks to append before the table can hold `tokens`.
  int32_t missing_for(int64_t tokens) const {
    const int64_t wanted = (tokens + tokens_per_block_ - 1) / tokens_per_block_;
    const int64_t missing = wanted - static_cast<int64_t>(blocks_.size());
    return missing > 0 ? static_cast<int32_t>(missing) : 0;
  }

 private:
  int32_t tokens_per_block_;
  std::vector<BlockId> blocks_;
};

}  // namespace omnibus
