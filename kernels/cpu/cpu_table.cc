#include "omnibus_kernels/cpu_table.h"

#include "isa_tables.h"

namespace omnibus::kernels {
namespace {

#if defined(__x86_64__)

#define OMNIBUS_NEED(feature) \
  if (!__builtin_cpu_supports(feature)) return feature

const char* missing_for_avx2() {
  OMNIBUS_NEED("avx2");
  OMNIBUS_NEED("fma");
  OMNIBUS_NEED("f16c");
  return "";
}

const char* missing_for_avx512() {
  if (const char* missing = missing_for_avx2(); *missing != 0) return missing;
  OMNIBUS_NEED("avx512f");
  OMNIBUS_NEED("avx512bw");
  OMNIBUS_NEED("avx512dq");
  OMNIBUS_NEED("avx512vl");
  return "";
}
#undef OMNIBUS_NEED

// bf16 dot products need a bf16 cache and whole vectors of 16 dimensions.
void attention_bf16_or_wide(const AttentionTile& t) {
  t.kv_f32 || t.head_dim % 16 != 0 ? attention_wide_avx512(t) : attention_bf16(t);
}

CpuTable best_avx512_table() {
  CpuTable table = avx512_table();
  const bool vnni = __builtin_cpu_supports("avx512vnni");
  const bool bf16 = __builtin_cpu_supports("avx512bf16");
  table.gemm_int8 = vnni ? gemm_int8_vnni : avx2_table().gemm_int8;
  if (bf16) table.attention = attention_bf16_or_wide;
  table.name = vnni ? (bf16 ? "avx512 (vnni, bf16)" : "avx512 (vnni)") : (bf16 ? "avx512 (bf16)" : "avx512");
  return table;
}

#endif

}  // namespace

const char* missing_feature(Isa isa) {
  if (isa == Isa::kGeneric) return "";
#if defined(__x86_64__)
  return isa == Isa::kAvx2 ? missing_for_avx2() : missing_for_avx512();
#else
  return isa == Isa::kAvx2 ? "avx2" : "avx512f";
#endif
}

const CpuTable* cpu_table(Isa isa) {
  if (*missing_feature(isa) != 0) return nullptr;
  if (isa == Isa::kGeneric) {
    static const CpuTable table = generic_table();
    return &table;
  }
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) {
    static const CpuTable table = avx2_table();
    return &table;
  }
  static const CpuTable table = best_avx512_table();
  return &table;
#else
  return nullptr;
#endif
}

}  // namespace omnibus::kernels
