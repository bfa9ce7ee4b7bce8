// The table of CPU kernels of one instruction set. Filled once, read-only, safe from any thread. Every float
// result that does not depend on bf16 dot products has the same bits in every table.
#pragma once

#include <cstdint>

#include "omnibus_kernels/attention.h"
#include "omnibus_kernels/formats.h"
#include "omnibus_kernels/gemm.h"
#include "omnibus_kernels/rows.h"

namespace omnibus::kernels {

struct CpuTable {
  const char* name;
  // int8 activations; forms kU4 ... kS8 only.
  void (*gemm_int8)(const GemmParams&, int32_t panel_begin, int32_t panel_end);
  // float activations, f32 fma, k ascending; every form.
  void (*gemm_f32)(const GemmParams&, int32_t panel_begin, int32_t panel_end);

  void (*rms_norm)(const float* x, const float* weight, float eps, int32_t row, const ActStore& out);
  void (*store_row)(const float* x, int32_t row, const ActStore& out);  // x as it is
  void (*gated)(const GatedParams&);
  void (*head_norm)(float* head, const float* weight, float eps, int32_t head_dim);  // in place
  void (*rope)(float* head, const RopeParams&);
  void (*kv_write)(const KvWriteParams&);

  void (*attention)(const AttentionTile&);
  // state = merge(state, partial), both [rows]; ascending segments only.
  void (*attention_merge)(float* state, const float* partial, int32_t rows, int32_t head_dim);
  // out[head_dim] = o / s of one row.
  void (*attention_finish)(const float* state, int32_t head_dim, float* out);

  // Largest of x[n] and whether all are finite. A NaN makes `finite` false, the maximum is then unspecified.
  float (*max_finite)(const float* x, int64_t n, bool* finite);
  // sum of exp(x[i] - max) in double: 16 lanes, lanes by index, added pairwise.
  double (*sum_exp)(const float* x, int64_t n, float max);
  // Ids with x[i] > threshold (i ascending) appended to ids[0, capacity); returns how many there are in
  // [*at, n) until capacity is reached, and leaves in *at where it stopped.
  int64_t (*above)(const float* x, int64_t* at, int64_t n, float threshold, int32_t* ids, int64_t capacity);
};

enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512 };

// The table, or null when this machine cannot run it.
const CpuTable* cpu_table(Isa isa);
// What cpu_table(isa) lacks here, e.g. "avx512f"; empty when nothing.
const char* missing_feature(Isa isa);

}  // namespace omnibus::kernels
