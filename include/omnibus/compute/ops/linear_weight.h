// LinearWeight: one matrix [n out, k in] packed for a device. Packing is lossless and follows sharding, so
// tensor parallelism never sees a packed layout. CPU layout: docs/cpu-kernels.md (16-row panels, groups of 32
// along k).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// Internal weight forms. kBlocks keeps the file's blocks and runs through the reference decoder (types
// without a panel form yet).
enum class WeightForm : uint8_t { kU4, kU4M, kU5, kU5M, kS8, kF32, kF16, kBF16, kBlocks };

// Cut points of k for a row-parallel product, in elements, multiples of 32: {0, ..., k}. The row's value is
// the fixed tree (left = first ceil(n/2) leaves) over the units; each unit is one ascending chain. One unit:
// a plain chain.
struct UnitCuts {
  std::vector<int32_t> k_begin;  // size units + 1; last = padded_k(k)
  int32_t units() const { return static_cast<int32_t>(k_begin.size()) - 1; }
  static UnitCuts single(int32_t k);
  // down projections: n = k/32 groups, U = 8 (n < 8: the largest power of two <= n), cut at floor(u*n/U)
  // groups.
  static UnitCuts of_ffn(int32_t k);
  // o projections: one unit per KV-head group of `columns_per_group`; neighbours join until the cut is on a
  // group of 32.
  static UnitCuts of_kv_groups(int32_t k, int32_t columns_per_group);
};

struct LinearWeight {
  int32_t n = 0, k = 0;
  uint32_t ggml_type = 0;  // as it stood in the file
  WeightForm form = WeightForm::kF32;
  Buffer packed;                // null on kMeta
  const float* bias = nullptr;  // [n] or null
  UnitCuts units;
  std::string name;  // for messages

  ActivationNeeds needs(ActivationMode mode) const;
};

struct PackRequest {
  std::string name;
  uint32_t ggml_type = 0;
  int32_t n = 0, k = 0;
  // Rows of the source in file layout (row r starts at r * row_bytes); empty on kMeta. k must fill whole
  // blocks.
  std::span<const uint8_t> rows;
  UnitCuts units;  // empty: single(k)
};

WeightForm weight_form(uint32_t ggml_type);
// Bytes `pack_linear` will take, from shapes alone. UNIMPLEMENTED names the type when it cannot run at all.
StatusOr<int64_t> packed_bytes(const OpContext& ctx, uint32_t ggml_type, int32_t n, int32_t k);
// Packs on all threads of the pool into `allocator`.
StatusOr<LinearWeight> pack_linear(const OpContext& ctx, const PackRequest& request, Allocator& allocator);

// Dequantises `rows` blocks of a row to float: the reference decoder of every type (bit-exact with gguf-py).
Status dequantize_row(uint32_t ggml_type, std::span<const uint8_t> blocks, std::span<float> out);

}  // namespace omnibus
