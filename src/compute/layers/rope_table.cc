#include "omnibus/compute/layers/rope_table.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace omnibus {

StatusOr<RopeTable> build_rope_table(const OpContext& ctx, const RopeSpec& spec, Allocator& allocator) {
  const int32_t half = spec.dims / 2;
  if (!spec.freq_factors.empty() && static_cast<int32_t>(spec.freq_factors.size()) != half)
    return absl::InvalidArgumentError(fmt::format("rope: {} frequency factors for {} rotated dimensions",
                                                  spec.freq_factors.size(), spec.dims));
  const size_t bytes = static_cast<size_t>(spec.positions) * static_cast<size_t>(half) * sizeof(float);
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer cos_buffer, allocator.allocate(bytes));
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer sin_buffer, allocator.allocate(bytes));
  auto* cos_out = static_cast<float*>(cos_buffer.data);
  auto* sin_out = static_cast<float*>(sin_buffer.data);
  RopeTable table{cos_out, sin_out, spec.dims, spec.positions, spec.neox};
  if (ctx.device.kind == DeviceKind::kMeta) return table;

  std::vector<double> frequency(static_cast<size_t>(half));
  for (size_t i = 0; i < frequency.size(); ++i) {
    frequency[i] = std::pow(spec.freq_base, -2.0 * static_cast<double>(i) / spec.dims) / spec.linear_factor;
    if (!spec.freq_factors.empty()) frequency[i] /= static_cast<double>(spec.freq_factors[i]);
  }
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange share = thread_range(spec.positions, thread, threads);
    for (int64_t position = share.begin; position < share.end; ++position) {
      for (size_t i = 0; i < frequency.size(); ++i) {
        const double angle = static_cast<double>(position) * frequency[i];
        const size_t at = static_cast<size_t>(position) * frequency.size() + i;
        cos_out[at] = static_cast<float>(std::cos(angle));
        sin_out[at] = static_cast<float>(std::sin(angle));
      }
    }
  });
  return table;
}

}  // namespace omnibus
