// Shard views: the rows or columns of a matrix that one rank keeps, in file layout, before packing. Rows are
// a part of the mapping; columns are copied unless the rank keeps all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/loader/state_dict.h"
#include "omnibus/compute/ops/linear_weight.h"

namespace omnibus {

struct ShardView {
  uint32_t ggml_type = 0;
  int32_t n = 0, k = 0;
  std::span<const uint8_t> rows;  // into the mapping, or into `copy`
  std::vector<uint8_t> copy;
};

// Column-parallel: any range of rows.
StatusOr<ShardView> shard_rows(const TensorView& tensor, Range rows);
// Row-parallel: a range of columns whose ends lie on blocks of the tensor's type; UNIMPLEMENTED names the
// tensor and the column where a cut would divide a block.
StatusOr<ShardView> shard_columns(const TensorView& tensor, Range columns);

// Columns of the units [units.begin, units.end), clipped to k; and their own cuts, from 0.
Range unit_columns(const UnitCuts& cuts, Range units, int32_t k);
UnitCuts unit_slice(const UnitCuts& cuts, Range units);

}  // namespace omnibus
