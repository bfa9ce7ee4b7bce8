#include "omnibus/compute/ops/kv_cache_view.h"

#include "omnibus_kernels/attention.h"

namespace omnibus {

int64_t kv_block_bytes(DType dtype, int32_t kv_heads, int32_t head_dim) {
  return int64_t{kv_heads} * 2 * kernels::kKvBlock * head_dim * dtype_bytes(dtype);
}

}  // namespace omnibus
