#include "omnibus/compute/loader/shard_view.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace omnibus {
namespace {

uint32_t type_id(const TensorView& tensor) { return static_cast<uint32_t>(tensor.info->type); }

Status check_range(const TensorView& tensor, Range range, int64_t size, const char* what) {
  if (range.begin >= 0 && range.begin <= range.end && range.end <= size) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("tensor '{}': {} [{}, {}) of {}", tensor.info->name, what, range.begin, range.end, size));
}

}  // namespace

StatusOr<ShardView> shard_rows(const TensorView& tensor, Range rows) {
  OMNIBUS_RETURN_IF_ERROR(check_range(tensor, rows, tensor.rows, "rows"));
  const auto row_bytes = static_cast<size_t>(tensor.row_bytes());
  ShardView shard;
  shard.ggml_type = type_id(tensor);
  shard.n = static_cast<int32_t>(rows.size());
  shard.k = static_cast<int32_t>(tensor.columns);
  shard.rows = tensor.data.subspan(static_cast<size_t>(rows.begin) * row_bytes,
                                   static_cast<size_t>(rows.size()) * row_bytes);
  return shard;
}

StatusOr<ShardView> shard_columns(const TensorView& tensor, Range columns) {
  OMNIBUS_RETURN_IF_ERROR(check_range(tensor, columns, tensor.columns, "columns"));
  if (columns == Range{0, tensor.columns}) return shard_rows(tensor, {0, tensor.rows});
  const GgmlTypeTraits* traits = ggml_type_traits(type_id(tensor));
  for (int64_t cut : {columns.begin, columns.end})
    if (cut % traits->block_elements != 0 && cut != tensor.columns)
      return absl::UnimplementedError(
          fmt::format("tensor '{}': a cut at column {} divides a block of {} ({} values)", tensor.info->name,
                      cut, traits->name, traits->block_elements));
  const auto bytes_of = [&](int64_t elements) {
    return static_cast<size_t>(elements / traits->block_elements * traits->block_bytes);
  };
  const size_t row_bytes = static_cast<size_t>(tensor.row_bytes());
  const size_t first = bytes_of(columns.begin), kept = bytes_of(columns.end) - first;
  ShardView shard;
  shard.ggml_type = type_id(tensor);
  shard.n = static_cast<int32_t>(tensor.rows);
  shard.k = static_cast<int32_t>(columns.size());
  shard.copy.resize(static_cast<size_t>(tensor.rows) * kept);
  for (size_t row = 0; row < static_cast<size_t>(tensor.rows) && kept > 0; ++row)
    std::memcpy(shard.copy.data() + row * kept, tensor.data.data() + row * row_bytes + first, kept);
  shard.rows = shard.copy;
  return shard;
}

Range unit_columns(const UnitCuts& cuts, Range units, int32_t k) {
  const auto cut = [&](int64_t u) { return std::min<int64_t>(k, cuts.k_begin[static_cast<size_t>(u)]); };
  return {cut(units.begin), cut(units.end)};
}

UnitCuts unit_slice(const UnitCuts& cuts, Range units) {
  UnitCuts slice;
  const int32_t first = cuts.k_begin[static_cast<size_t>(units.begin)];
  for (int64_t u = units.begin; u <= units.end; ++u)
    slice.k_begin.push_back(cuts.k_begin[static_cast<size_t>(u)] - first);
  return slice;
}

}  // namespace omnibus
