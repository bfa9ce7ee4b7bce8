// The part of a table that all instruction sets build from the same source. Include last.
#pragma once

#include "omnibus_kernels/cpu_table.h"

namespace omnibus::kernels {
namespace {

inline CpuTable make_table(const char* name, void (*attention)(const AttentionTile&)) {
  CpuTable t = {};
  t.name = name;
  t.gemm_f32 = gemm_f32;
  t.rms_norm = rms_norm;
  t.store_row = store_row;
  t.gated = gated;
  t.head_norm = head_norm;
  t.rope = rope;
  t.kv_write = kv_write;
  t.attention = attention;
  t.attention_merge = attention_merge;
  t.attention_finish = attention_finish;
  t.max_finite = max_finite;
  t.sum_exp = sum_exp;
  t.above = above;
  return t;
}

}  // namespace
}  // namespace omnibus::kernels
