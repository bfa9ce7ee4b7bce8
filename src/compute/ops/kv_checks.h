// What every op that touches the KV cache demands of its view.
#pragma once

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/kv_cache_view.h"
#include "omnibus_kernels/attention.h"

namespace omnibus {

inline void check_kv(const KVCacheView& kv, int32_t heads) {
  OMNIBUS_CHECK(kv.dtype == DType::kBF16 || kv.dtype == DType::kF32, "KV cache: bf16 or f32");
  OMNIBUS_CHECK(kv.head_dim > 0 && kv.head_dim % 2 == 0 && kv.head_dim <= kernels::kMaxHeadDim,
                "KV cache: head_dim must be even and at most 256");
  OMNIBUS_CHECK(kv.kv_heads > 0 && heads % kv.kv_heads == 0,
                "KV cache: heads must be a multiple of kv_heads");
  OMNIBUS_CHECK(kv.block_bytes >= kv_block_bytes(kv.dtype, kv.kv_heads, kv.head_dim),
                "KV cache: block_bytes smaller than a block");
}

}  // namespace omnibus
