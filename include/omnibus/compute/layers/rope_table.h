// Rotary embedding tables (RoFormer, arXiv 2104.09864): cos and sin of every position, angles in f64, stored
// as f32.
#pragma once

#include <cstdint>
#include <span>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/compute/ops/qkv_rope_kv_write.h"

namespace omnibus {

struct RopeSpec {
  int32_t dims = 0;  // rotated dimensions, even
  int32_t positions = 0;
  double freq_base = 10000.0;
  double linear_factor = 1.0;           // divides every frequency
  std::span<const float> freq_factors;  // [dims / 2] divisors (llama3 scaling), or empty
  bool neox = false;
};

// frequency_i = base^(-2 i / dims) / linear_factor / freq_factors[i]. On kMeta only the bytes are taken.
StatusOr<RopeTable> build_rope_table(const OpContext& ctx, const RopeSpec& spec, Allocator& allocator);

}  // namespace omnibus
