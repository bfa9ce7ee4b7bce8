#include "isa_tables.h"
// The order matters: each header builds on the ones above it.
#include "vec_avx2.h"
// clang-format off
#include "math.h"
#include "rows_impl.h"
#include "decode_impl.h"
#include "gemm_f32_impl.h"
#include "dot_avx2.h"
#include "gemm_int8_impl.h"
#include "attention_impl.h"
#include "attention_wide.h"
// clang-format on
#include "make_table.h"

namespace omnibus::kernels {

CpuTable avx2_table() {
  CpuTable table = make_table("avx2", attention_wide);
  table.gemm_int8 = gemm_int8;
  return table;
}

}  // namespace omnibus::kernels
