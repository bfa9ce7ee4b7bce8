#include "isa_tables.h"
// The order matters: each header builds on the ones above it.
#include "vec_avx512.h"
// clang-format off
#include "math.h"
#include "rows_impl.h"
#include "decode_impl.h"
#include "gemm_f32_impl.h"
#include "attention_impl.h"
#include "attention_wide.h"
// clang-format on
#include "make_table.h"

namespace omnibus::kernels {

void attention_wide_avx512(const AttentionTile& t) { attention_wide(t); }

CpuTable avx512_table() { return make_table("avx512", attention_wide); }

}  // namespace omnibus::kernels
