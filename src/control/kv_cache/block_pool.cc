#include "omnibus/control/kv_cache/block_pool.h"

#include <string>
#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus {

BlockPool::BlockPool(int32_t num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {
  free_.reserve(blocks_.size());
  for (BlockId id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

const BlockPool::Block& BlockPool::block(BlockId id) const {
  OMNIBUS_CHECK(id >= 0 && id < total(), "block id outside its pool");
  return blocks_[static_cast<size_t>(id)];
}

std::optional<BlockId> BlockPool::take() {
  if (free_.empty()) return std::nullopt;
  const BlockId id = free_.back();
  free_.pop_back();
  OMNIBUS_CHECK(block(id).ref_count == 0, "a block on the free list is in use");
  block(id).ref_count = 1;
  return id;
}

void BlockPool::add_ref(BlockId id) {
  OMNIBUS_CHECK(block(id).ref_count > 0, "a free block cannot be shared");
  ++block(id).ref_count;
}

void BlockPool::release(BlockId id) {
  OMNIBUS_CHECK(block(id).ref_count > 0, "a free block cannot be released");
  if (--block(id).ref_count == 0) free_.push_back(id);
}

Status BlockPool::check_integrity() const {
  std::vector<bool> listed(blocks_.size());
  for (BlockId id : free_) {
    if (listed[static_cast<size_t>(id)])
      return absl::InternalError("block " + std::to_string(id) + " is on the free list twice");
    listed[static_cast<size_t>(id)] = true;
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (listed[i] == (blocks_[i].ref_count == 0)) continue;
    return absl::InternalError("block " + std::to_string(i) + " has reference count " +
                               std::to_string(blocks_[i].ref_count) +
                               (listed[i] ? " and is on the free list" : " and is not on the free list"));
  }
  return absl::OkStatus();
}

}  // namespace omnibus
