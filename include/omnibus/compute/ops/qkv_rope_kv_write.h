// qkv_rope_kv_write: the three input projections of attention, q/k norms, rotary embedding, and the write of
// K and V into the paged cache. RoPE: Su et al., RoFormer (2021); angles in f32 from a precomputed table.
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/kv_cache_view.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// cos and sin for every position of the context: [positions, dims / 2] each.
struct RopeTable {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int32_t dims = 0;  // rotated dimensions, even, <= head_dim; the rest passes through
  int32_t positions = 0;
  bool neox = false;  // pairs (i, i + dims/2) instead of (2i, 2i + 1)
};

struct QkvParams {
  const Activations* x = nullptr;   // [m, hidden]
  const LinearWeight* q = nullptr;  // n = heads * head_dim
  const LinearWeight* k = nullptr;  // n = kv_heads * head_dim
  const LinearWeight* v = nullptr;
  const float* q_norm = nullptr;  // [head_dim] RMSNorm per head before rope, or null
  const float* k_norm = nullptr;
  float norm_eps = 1e-6F;
  RopeTable rope;
  const int32_t* positions = nullptr;  // [m]
  const int64_t* slots =
      nullptr;  // [m]: block_id * 16 + offset in the block, ascending within a
                // block; < 0: not written. Slots behind the last one of a block become zero
  KVCacheView kv;
  int32_t heads = 0;
  float* scratch = nullptr;  // [m, (heads + 2 * kv_heads) * head_dim]: where q, k, v are formed
  float* q_out = nullptr;    // [m, heads, head_dim]
};
void qkv_rope_kv_write(const OpContext& ctx, const QkvParams& params);

}  // namespace omnibus
