// KVCacheView: one layer's paged KV cache in device memory. Block = 16 tokens; per block, for each kv head: K
// then V.
//   K: [head_dim / 2 pairs][16 tokens][2]      V: [8 token pairs][head_dim][2]
// so that one vector load feeds a two-wide dot product (docs/cpu-kernels.md, attention). The f32 cache
// (numerics f32) has the same shape. Slots never written read as zero.
#pragma once

#include <cstdint>

#include "omnibus/compute/core/dtype.h"

namespace omnibus {

struct KVCacheView {
  void* data = nullptr;
  DType dtype = DType::kBF16;  // kBF16 | kF32
  int32_t kv_heads = 0;
  int32_t head_dim = 0;     // even
  int64_t block_bytes = 0;  // bytes from one block to the next within this layer
  int32_t num_blocks = 0;
};

// kv_heads * 2 * 16 * head_dim * dtype bytes.
int64_t kv_block_bytes(DType dtype, int32_t kv_heads, int32_t head_dim);

}  // namespace omnibus
