// embed: rows of an embedding table as floats.
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// out[i, :] = table[ids[i], :]. `table` is packed like any matrix (n = vocabulary, k = width), so that a tied
// head and the embedding share one copy. Decoding is exact, in either mode. ids outside [first_id, first_id +
// n) give zero rows (vocabulary shards; a sum over ranks completes them).
struct EmbedParams {
  const LinearWeight* table = nullptr;
  const int32_t* ids = nullptr;  // [m]
  int32_t first_id = 0;
  int32_t m = 0;
  float* out = nullptr;  // [m, k]
};
void embed(const OpContext& ctx, const EmbedParams& params);

}  // namespace omnibus
