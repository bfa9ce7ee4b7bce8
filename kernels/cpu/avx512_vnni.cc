#include "isa_tables.h"
// clang-format off
#include "dot_vnni.h"
#include "gemm_int8_impl.h"
// clang-format on

namespace omnibus::kernels {

void gemm_int8_vnni(const GemmParams& p, int32_t panel_begin, int32_t panel_end) {
  gemm_int8(p, panel_begin, panel_end);
}

}  // namespace omnibus::kernels
