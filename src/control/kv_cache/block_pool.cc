#include "omnibus/control/kv_cache/block_pool.h"

#include <string>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/mutant.h"

namespace omnibus {

BlockPool::BlockPool(int32_t num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {
  free_.reserve(blocks_.size());
  for (BlockId id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

const BlockPool::Block& BlockPool::block(BlockId id) const {
  OMNIBUS_CHECK(id >= 0 && id < total(), "block id outside its pool");
  return blocks_[static_cast<size_t>(id)];
}

void BlockPool::link_newest(BlockId id) {
  Block& b = block(id);
  b.older = newest_;
  b.newer = kNone;
  (newest_ == kNone ? oldest_ : block(newest_).newer) = id;
  newest_ = id;
  ++cached_;
}

void BlockPool::unlink(BlockId id) {
  Block& b = block(id);
  (b.older == kNone ? oldest_ : block(b.older).newer) = b.newer;
  (b.newer == kNone ? newest_ : block(b.newer).older) = b.older;
  b.older = b.newer = kNone;
  --cached_;
}

std::optional<BlockPool::Taken> BlockPool::take() {
  Taken taken;
  if (!free_.empty()) {
    taken.id = free_.back();
    free_.pop_back();
  } else if (oldest_ != kNone) {
    taken = {oldest_, true};
    unlink(taken.id);
    block(taken.id).findable = false;
  } else {
    return std::nullopt;
  }
  OMNIBUS_CHECK(block(taken.id).ref_count == 0, "a block that nobody may hold is in use");
  block(taken.id).ref_count = 1;
  return taken;
}

void BlockPool::add_ref(BlockId id) {
  Block& b = block(id);
  OMNIBUS_CHECK(b.ref_count > 0 || b.findable, "a free block cannot be shared");
  if (OMNIBUS_MUTANT(3)) return;
  if (b.ref_count == 0) unlink(id);
  ++b.ref_count;
}

void BlockPool::release(BlockId id) {
  Block& b = block(id);
  OMNIBUS_CHECK(b.ref_count > 0, "a block that nobody holds cannot be released");
  b.ref_count = OMNIBUS_MUTANT(2) ? 0 : b.ref_count - 1;
  if (b.ref_count > 0) return;
  if (b.findable) return link_newest(id);
  free_.push_back(id);
}

void BlockPool::set_findable(BlockId id) {
  OMNIBUS_CHECK(block(id).ref_count > 0, "only a used block has content to be found");
  block(id).findable = true;
}

void BlockPool::forget(BlockId id) {
  Block& b = block(id);
  if (!b.findable) return;
  b.findable = false;
  if (b.ref_count > 0) return;
  unlink(id);
  free_.push_back(id);
}

Status BlockPool::check_integrity() const {
  const auto broken = [](BlockId id, const std::string& what) {
    return absl::InternalError("block " + std::to_string(id) + " " + what);
  };
  std::vector<bool> listed(blocks_.size());
  for (BlockId id : free_) {
    if (listed[static_cast<size_t>(id)]) return broken(id, "is on the free list twice");
    listed[static_cast<size_t>(id)] = true;
    if (block(id).findable) return broken(id, "is free, but can be found");
  }
  int32_t cached = 0;
  BlockId before = kNone;
  for (BlockId id = oldest_; id != kNone; id = block(id).newer) {
    if (listed[static_cast<size_t>(id)] || block(id).older != before)
      return broken(id, "is out of place in the list of cached blocks");
    listed[static_cast<size_t>(id)] = true;
    if (!block(id).findable) return broken(id, "is cached, but cannot be found");
    before = id;
    ++cached;
  }
  if (before != newest_ || cached != cached_)
    return absl::InternalError(std::to_string(cached) + " blocks are on the list of the " +
                               std::to_string(cached_) + " cached ones");
  for (BlockId id = 0; id < total(); ++id) {
    const int32_t refs = block(id).ref_count;
    if (listed[static_cast<size_t>(id)] == (refs == 0)) continue;
    return broken(id, "has reference count " + std::to_string(refs) +
                          (refs == 0 ? " and is neither free nor cached" : " and is free or cached"));
  }
  return absl::OkStatus();
}

}  // namespace omnibus
