// The merge loop of BPE: while some adjacent pair joins, join the pair of lowest rank, leftmost first.
// Time O(n log n) in the number of symbols, for every input and every table.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "merge_table.h"

namespace omnibus {

// Buffers of one encode call, kept between pieces. `symbols` is input and output.
struct MergeWorkspace {
  std::vector<int32_t> symbols;  // token ids; a negative value is no token and joins nothing
  std::vector<uint32_t> ranks;
  uint64_t steps = 0;  // pairs looked at since creation: what the doubling test counts
};

void merge_symbols(const MergeTable& table, MergeWorkspace& work);

}  // namespace omnibus
