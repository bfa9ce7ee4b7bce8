// What the instruction-set files give to cpu_table.cc. Call one only on a machine that has its features.
#pragma once

#include "omnibus_kernels/cpu_table.h"

namespace omnibus::kernels {

CpuTable generic_table();
#if defined(__x86_64__)
CpuTable avx2_table();    // AVX2, FMA, F16C
CpuTable avx512_table();  // F, BW, DQ, VL; without gemm_int8
void attention_wide_avx512(const AttentionTile&);
void gemm_int8_vnni(const GemmParams&, int32_t, int32_t);  // AVX512-VNNI
void attention_bf16(const AttentionTile&);                 // AVX512-BF16; bf16 cache only
#endif

}  // namespace omnibus::kernels
