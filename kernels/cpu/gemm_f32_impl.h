// Float matmul: weights decoded 256 columns at a time, then one chain of fma per output, k ascending inside a
// unit, units in the fixed tree. The same bits on every instruction set. Include after decode_impl.h.
#pragma once

#include <cstdint>

#include "omnibus_kernels/gemm.h"

#include "record_size.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kTokenBlock = 64;
constexpr int32_t kTreeDepth = 11;  // log2(kMaxUnits) + 1

template <int kRows>
inline void f32_tile(const float* w, const float* x, int64_t x_stride, int32_t columns, float* sums) {
  F acc[kRows];
  for (int m = 0; m < kRows; ++m) acc[m] = load(sums + m * kPanelRows);
  for (int32_t k = 0; k < columns; ++k) {
    const F weights = load(w + static_cast<int64_t>(k) * kPanelRows);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) acc[m] = fma(weights, set1(x[m * x_stride + k]), acc[m]);
  }
  for (int m = 0; m < kRows; ++m) store(sums + m * kPanelRows, acc[m]);
}

inline void f32_tiles(const float* w, const float* x, int64_t x_stride, int32_t columns, int32_t rows,
                      float* sums) {
  int32_t m = 0;
  const auto row_x = [&] { return x + m * x_stride; };
  const auto row_sums = [&] { return sums + m * kPanelRows; };
  if constexpr (kF32TileRows >= 16) {
    for (; rows - m >= 16; m += 16) f32_tile<16>(w, row_x(), x_stride, columns, row_sums());
    for (; rows - m >= 8; m += 8) f32_tile<8>(w, row_x(), x_stride, columns, row_sums());
  }
  for (; rows - m >= 4; m += 4) f32_tile<4>(w, row_x(), x_stride, columns, row_sums());
  for (; rows - m >= 2; m += 2) f32_tile<2>(w, row_x(), x_stride, columns, row_sums());
  for (; m < rows; ++m) f32_tile<1>(w, row_x(), x_stride, columns, row_sums());
}

inline void store_outputs(const GemmParams& p, int32_t panel, int32_t row, int32_t rows, const float* sums) {
  const int32_t first = panel * kPanelRows;
  const int32_t columns = p.n - first < kPanelRows ? p.n - first : kPanelRows;
  for (int32_t m = 0; m < rows; ++m) {
    float* out = p.out + (row - p.m_begin + m) * p.out_stride + (first - p.column_begin);
    for (int32_t c = 0; c < columns; ++c) {
      const float value =
          p.bias != nullptr ? sums[m * kPanelRows + c] + p.bias[first + c] : sums[m * kPanelRows + c];
      out[c] = p.accumulate ? out[c] + value : value;
    }
  }
}

// Adds up the nodes of the unit tree that end at this unit; what is left is the sum or goes on the stack.
inline void close_unit(float* sums, float (*stack)[kTokenBlock * kPanelRows], int32_t& depth, int32_t merges,
                       bool last, int32_t rows) {
  const int32_t n = rows * kPanelRows;
  for (; merges > 0; --merges) {
    const float* left = stack[--depth];
    for (int32_t i = 0; i < n; ++i) sums[i] = left[i] + sums[i];
  }
  if (last) return;
  __builtin_memcpy(stack[depth++], sums, static_cast<unsigned long>(n) * sizeof(float));
  __builtin_memset(sums, 0, static_cast<unsigned long>(n) * sizeof(float));
}

inline void f32_panel(const GemmParams& p, const uint8_t* panel_data, int32_t panel, int32_t row,
                      int32_t rows) {
  alignas(64) float sums[kTokenBlock * kPanelRows];
  alignas(64) float stack[kTreeDepth][kTokenBlock * kPanelRows];
  alignas(64) float buffer[kDecodeColumns * kPanelRows];
  __builtin_memset(sums, 0, static_cast<unsigned long>(rows) * kPanelRows * sizeof(float));
  const int64_t x_stride = static_cast<int64_t>(p.x.groups) * kGroup;
  const float* x = p.x.f32 + row * x_stride;
  int32_t depth = 0;
  int32_t unit = 0;
  const int32_t all = p.x.groups * kGroup;
  for (int32_t chunk = 0; chunk < all; chunk += kDecodeColumns) {
    const int32_t chunk_end = chunk + kDecodeColumns < all ? chunk + kDecodeColumns : all;
    const float* w = decode_columns(p, panel_data, chunk, chunk_end - chunk, buffer);
    for (int32_t k = chunk; k < chunk_end;) {
      const int32_t unit_end = p.unit_end[unit] * kGroup;
      const int32_t end = unit_end < chunk_end ? unit_end : chunk_end;
      f32_tiles(w + static_cast<int64_t>(k - chunk) * kPanelRows, x + k, x_stride, end - k, rows, sums);
      k = end;
      if (k != unit_end) continue;
      close_unit(sums, stack, depth, p.unit_merges[unit], unit + 1 == p.units, rows);
      ++unit;
    }
  }
  store_outputs(p, panel, row, rows, sums);
}

void gemm_f32(const GemmParams& p, int32_t panel_begin, int32_t panel_end) {
  const int64_t bytes = p.form == Form::kBlocks ? kPanelRows * p.row_bytes
                                                : record_size(p.form) * static_cast<int64_t>(p.x.groups);
  for (int32_t row = p.m_begin; row < p.m_end; row += kTokenBlock) {
    const int32_t rows = p.m_end - row < kTokenBlock ? p.m_end - row : kTokenBlock;
    for (int32_t panel = panel_begin; panel < panel_end; ++panel) {
      f32_panel(p, p.panels + panel * bytes, panel, row, rows);
    }
  }
}

}  // namespace
}  // namespace omnibus::kernels
