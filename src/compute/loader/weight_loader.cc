#include "omnibus/compute/loader/weight_loader.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "omnibus/compute/loader/shard_view.h"

namespace omnibus {

WeightLoader::WeightLoader(StateDict& state, const OpContext& ctx, Allocator& allocator, Progress progress)
    : state_(state), ctx_(ctx), allocator_(allocator), progress_(std::move(progress)) {}

void WeightLoader::done_with(const TensorView& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.info->bytes);
  stats_.source_bytes += bytes;
  done_bytes_ += bytes;
  if (on_meta()) return;
  state_.file().release_pages(*tensor.info);
  if (progress_) progress_(done_bytes_, state_.total_bytes());
}

StatusOr<LinearWeight> WeightLoader::linear(const LinearSpec& spec) {
  const std::string name = spec.name + ".weight";
  OMNIBUS_ASSIGN_OR_RETURN(const TensorView tensor, state_.matrix(name, spec.n, spec.k));
  const bool rows_cut = spec.rows != Range{0, spec.n};
  const bool columns_cut = spec.columns != Range{0, spec.k};
  if (rows_cut && columns_cut)
    return absl::InternalError(fmt::format("tensor '{}': cut along both dimensions", name));
  ++stats_.type_count[ggml_type_name(static_cast<uint32_t>(tensor.info->type))];

  LinearWeight weight;
  if (spec.rows.size() > 0 && spec.columns.size() > 0) {
    PackRequest request;
    ShardView shard;
    if (on_meta()) {  // shapes only: the cut is checked when the real device loads
      shard.ggml_type = static_cast<uint32_t>(tensor.info->type);
      shard.n = static_cast<int32_t>(spec.rows.size());
      shard.k = static_cast<int32_t>(spec.columns.size());
    } else {
      OMNIBUS_ASSIGN_OR_RETURN(
          shard, columns_cut ? shard_columns(tensor, spec.columns) : shard_rows(tensor, spec.rows));
    }
    request.name = name;
    request.ggml_type = shard.ggml_type;
    request.n = shard.n;
    request.k = shard.k;
    request.rows = shard.rows;
    request.units = spec.units;
    OMNIBUS_ASSIGN_OR_RETURN(weight, pack_linear(ctx_, request, allocator_));
  } else {
    weight.n = static_cast<int32_t>(spec.rows.size());
    weight.k = static_cast<int32_t>(spec.columns.size());
    weight.name = name;
  }
  done_with(tensor);
  if (spec.with_bias && state_.has(spec.name + ".bias")) {
    OMNIBUS_ASSIGN_OR_RETURN(weight.bias, vector(spec.name + ".bias", spec.n, spec.rows));
  }
  return weight;
}

StatusOr<const float*> WeightLoader::vector(std::string_view name, int64_t elements, Range range) {
  OMNIBUS_ASSIGN_OR_RETURN(const TensorView tensor, state_.vector(name, elements));
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer buffer,
                           allocator_.allocate(static_cast<size_t>(range.size()) * sizeof(float)));
  auto* out = static_cast<float*>(buffer.data);
  if (!on_meta() && range.size() > 0) {
    std::vector<float> all(static_cast<size_t>(elements));
    if (Status s = dequantize_row(static_cast<uint32_t>(tensor.info->type), tensor.data, all); !s.ok())
      return Status(s.code(), fmt::format("tensor '{}': {}", name, status_message(s)));
    std::copy(all.begin() + range.begin, all.begin() + range.end, out);
  }
  done_with(tensor);
  return static_cast<const float*>(out);
}

}  // namespace omnibus
