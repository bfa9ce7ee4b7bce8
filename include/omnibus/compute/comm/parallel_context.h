// ParallelContext: immutable ranks, sizes and groups of one process; the only place with rank arithmetic.
#pragma once

#include <cstdint>

namespace omnibus {

// [begin, end) of something countable.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct ParallelContext {
  int32_t tp_rank = 0, tp_size = 1;
  int32_t pp_rank = 0, pp_size = 1;
  int32_t ep_rank = 0, ep_size = 1;
  int32_t dp_rank = 0, dp_size = 1;

  // This rank's share of `units` shard units (KV-head groups, quant block ranges, vocabulary panels): the
  // tree of ranks laid node by node on the fixed tree of units (left child = first ceil(n/2) leaves), so that
  // each rank owns one whole subtree or nothing. Shares may be uneven or empty.
  Range tp_range(int64_t units) const { return range(units, tp_rank, tp_size); }
  static Range range(int64_t units, int32_t rank, int32_t ranks);
  // Layers of this pipeline stage.
  Range layer_range(int32_t layers) const;
};

}  // namespace omnibus
