#include "merge_table.h"

#include <utility>

namespace omnibus {

MergeTable::MergeTable(std::vector<Merge> merges) : merges_(std::move(merges)) {
  size_t capacity = 16;
  while (capacity < 2 * merges_.size()) capacity *= 2;
  slots_.resize(capacity);
  mask_ = capacity - 1;
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const uint64_t key = key_of(merges_[rank].left, merges_[rank].right);
    size_t i = slot_of(key);
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask_;
    slots_[i] = {key, static_cast<uint32_t>(rank)};
  }
}

}  // namespace omnibus
