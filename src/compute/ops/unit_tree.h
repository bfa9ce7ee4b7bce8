// The fixed tree over n leaves: node = left + right with left = the first ceil(n / 2) leaves.
#pragma once

#include <cstdint>
#include <span>

namespace omnibus {

// merges[u]: how many nodes of the tree end at leaf u, that is, how often a stack of partial sums is folded
// after leaf u has been formed.
inline void mark_tree_ends(int32_t first, int32_t leaves, std::span<uint8_t> merges) {
  if (leaves <= 1) return;
  const int32_t left = (leaves + 1) / 2;
  mark_tree_ends(first, left, merges);
  mark_tree_ends(first + left, leaves - left, merges);
  ++merges[static_cast<size_t>(first + leaves - 1)];
}
inline void unit_merges(int32_t leaves, std::span<uint8_t> merges) {
  for (int32_t u = 0; u < leaves; ++u) merges[static_cast<size_t>(u)] = 0;
  mark_tree_ends(0, leaves, merges);
}

}  // namespace omnibus
