#include "omnibus/compute/ops/linear_weight.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/base/common/check.h"
#include "omnibus_kernels/dequant.h"
#include "omnibus_kernels/pack.h"

#include "cpu_ops.h"

namespace omnibus {
namespace {

// The integer kernels keep 64 bytes a group on the stack.
constexpr int32_t kMaxK = 1 << 19;

kernels::Form kernel_form(uint32_t ggml_type) { return static_cast<kernels::Form>(weight_form(ggml_type)); }

int32_t panels_of(int32_t n) { return (n + kernels::kPanelRows - 1) / kernels::kPanelRows; }

// Bytes of one row in the file; the name is only for messages.
StatusOr<int64_t> file_row_bytes(const std::string& name, uint32_t ggml_type, int32_t n, int32_t k) {
  const kernels::BlockLayout layout = kernels::block_layout(ggml_type);
  if (layout.elements == 0) {
    return absl::UnimplementedError(fmt::format("'{}': tensor type {} ({}) has no CPU kernel", name,
                                                kernels::ggml_type_name(ggml_type), ggml_type));
  }
  if (n <= 0 || k <= 0 || k > kMaxK) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': shape [{}, {}]; rows must be positive, columns 1 to {}", name, n, k, kMaxK));
  }
  if (k % layout.elements != 0) {
    return absl::InvalidArgumentError(fmt::format("'{}': {} columns do not fill whole {} blocks of {}", name,
                                                  k, kernels::ggml_type_name(ggml_type), layout.elements));
  }
  return int64_t{k / layout.elements} * layout.bytes;
}

Status check_units(const std::string& name, const UnitCuts& cuts, int32_t k) {
  const std::vector<int32_t>& at = cuts.k_begin;
  const bool ends = at.size() >= 2 && at.front() == 0 && at.back() == padded_k(k);
  const bool ascending = std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) == at.end();
  const bool aligned = std::all_of(at.begin(), at.end(), [](int32_t c) { return c % kQuantGroup == 0; });
  if (!ends || !ascending || !aligned || cuts.units() > kernels::kMaxUnits) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': unit cuts must ascend from 0 to {} in multiples of {}, at most {} units", name,
                    padded_k(k), kQuantGroup, kernels::kMaxUnits));
  }
  return {};
}

}  // namespace

UnitCuts UnitCuts::single(int32_t k) { return {{0, static_cast<int32_t>(padded_k(k))}}; }

UnitCuts UnitCuts::of_ffn(int32_t k) {
  const int64_t groups = padded_k(k) / kQuantGroup;
  int64_t units = 8;
  while (units > groups) units /= 2;
  UnitCuts cuts;
  for (int64_t u = 0; u <= units; ++u) {
    cuts.k_begin.push_back(static_cast<int32_t>(u * groups / units) * kQuantGroup);
  }
  return cuts;
}

UnitCuts UnitCuts::of_kv_groups(int32_t k, int32_t columns_per_group) {
  OMNIBUS_CHECK(columns_per_group > 0, "a KV group has at least one column");
  UnitCuts cuts{{0}};
  for (int64_t c = columns_per_group; c < k; c += columns_per_group) {
    if (c % kQuantGroup == 0) cuts.k_begin.push_back(static_cast<int32_t>(c));
  }
  cuts.k_begin.push_back(static_cast<int32_t>(padded_k(k)));
  return cuts;
}

WeightForm weight_form(uint32_t ggml_type) {
  switch (ggml_type) {
    case 0:
      return WeightForm::kF32;
    case 1:
      return WeightForm::kF16;
    case 2:
      return WeightForm::kU4;
    case 3:
      return WeightForm::kU4M;
    case 6:
      return WeightForm::kU5;
    case 7:
      return WeightForm::kU5M;
    case 8:
      return WeightForm::kS8;
    case 30:
      return WeightForm::kBF16;
    default:
      return WeightForm::kBlocks;
  }
}

ActivationNeeds LinearWeight::needs(ActivationMode mode) const {
  if (mode == ActivationMode::kF32 || form > WeightForm::kS8) return {.f32 = true};
  return {.int8 = true, .scaled_sum = form == WeightForm::kU4M || form == WeightForm::kU5M};
}

StatusOr<int64_t> packed_bytes(const OpContext& /*ctx*/, uint32_t ggml_type, int32_t n, int32_t k) {
  OMNIBUS_ASSIGN_OR_RETURN(const int64_t row_bytes, file_row_bytes("weight", ggml_type, n, k));
  return panels_of(n) * kernels::panel_bytes(kernel_form(ggml_type), k, row_bytes);
}

StatusOr<LinearWeight> pack_linear(const OpContext& ctx, const PackRequest& request, Allocator& allocator) {
  OMNIBUS_ASSIGN_OR_RETURN(const int64_t row_bytes,
                           file_row_bytes(request.name, request.ggml_type, request.n, request.k));
  LinearWeight weight;
  weight.n = request.n;
  weight.k = request.k;
  weight.ggml_type = request.ggml_type;
  weight.form = weight_form(request.ggml_type);
  weight.name = request.name;
  weight.units = request.units.k_begin.empty() ? UnitCuts::single(request.k) : request.units;
  OMNIBUS_RETURN_IF_ERROR(check_units(request.name, weight.units, request.k));
  const bool meta = ctx.device.kind == DeviceKind::kMeta;
  const int64_t file_bytes = row_bytes * request.n;
  if (!meta && static_cast<int64_t>(request.rows.size()) != file_bytes) {
    return absl::InvalidArgumentError(fmt::format("'{}': {} bytes of data, shape [{}, {}] needs {}",
                                                  request.name, request.rows.size(), request.n, request.k,
                                                  file_bytes));
  }
  OMNIBUS_ASSIGN_OR_RETURN(const int64_t bytes, packed_bytes(ctx, request.ggml_type, request.n, request.k));
  OMNIBUS_ASSIGN_OR_RETURN(weight.packed, allocator.allocate(static_cast<size_t>(bytes)));
  if (meta) return weight;
  const kernels::PackParams params{kernel_form(request.ggml_type),
                                   request.ggml_type,
                                   request.rows.data(),
                                   row_bytes,
                                   request.n,
                                   request.k,
                                   static_cast<uint8_t*>(weight.packed.data)};
  // The ranges that linear() will use: each thread first-touches the memory it streams later.
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange units = thread_range(cpu::row_units(request.n), thread, threads);
    kernels::pack_panels(params, static_cast<int32_t>(units.begin) * 2,
                         std::min(static_cast<int32_t>(units.end) * 2, panels_of(request.n)));
  });
  return weight;
}

Status dequantize_row(uint32_t ggml_type, std::span<const uint8_t> blocks, std::span<float> out) {
  const kernels::BlockLayout layout = kernels::block_layout(ggml_type);
  if (layout.elements == 0) {
    return absl::UnimplementedError(
        fmt::format("tensor type {} ({}) has no decoder", kernels::ggml_type_name(ggml_type), ggml_type));
  }
  const size_t count = out.size() / static_cast<size_t>(layout.elements);
  if (out.size() % static_cast<size_t>(layout.elements) != 0 ||
      blocks.size() != count * static_cast<size_t>(layout.bytes)) {
    return absl::InvalidArgumentError(fmt::format("{}: {} bytes do not hold {} elements",
                                                  kernels::ggml_type_name(ggml_type), blocks.size(),
                                                  out.size()));
  }
  kernels::dequantize_blocks(ggml_type, blocks.data(), static_cast<int64_t>(count), out.data());
  return {};
}

}  // namespace omnibus
