// y = x W^T over packed panels.
#pragma once

#include <cstdint>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {

struct GemmParams {
  Form form;
  uint32_t ggml_type;  // kBlocks
  const uint8_t* panels;
  int64_t row_bytes;  // kBlocks
  int32_t n, k;       // groups = x.groups = ceil(k / 32)

  ActStore x;
  int32_t m_begin, m_end;  // rows of x; m_begin a multiple of 16

  // Unit u covers groups [unit_end[u - 1], unit_end[u]) and is one ascending chain; after it, unit_merges[u]
  // nodes of the fixed tree end.
  const int32_t* unit_end;
  const uint8_t* unit_merges;
  int32_t units;

  const float* bias;   // [n] or null
  float* out;          // row m_begin, column column_begin
  int64_t out_stride;  // floats
  int32_t column_begin;
  bool accumulate;  // out += instead of out =
};

}  // namespace omnibus::kernels
