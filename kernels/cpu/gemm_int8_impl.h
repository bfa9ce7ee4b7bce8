// Integer matmul: u8 weights by s8 activations per group of 32, one f32 chain per output over groups in
// ascending order: acc = fma(float(dot), scale * activation scale, acc), then the minimum's term; units in
// the fixed tree. One template for 1 ... 16 rows: the order never depends on the tile. Include after a
// dot_*.h, which gives:
//   kLanes, kTileRows, kRowsInFlight, Weight, Dot, Sum and load_weights, dot, and a few float operations on
//   Sum.
#pragma once

#include <cstdint>

#include "omnibus_kernels/gemm.h"

#include "record_size.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kInt8TokenBlock = 64;
constexpr int32_t kInt8TreeDepth = 11;

constexpr bool has_min(Form form) { return form == Form::kU4M || form == Form::kU5M; }
constexpr int32_t zero_point(Form form) {
  return has_min(form) ? 0 : (form == Form::kU4 ? 8 : (form == Form::kU5 ? 16 : 128));
}
constexpr int32_t scale_offset(Form form) {
  return form == Form::kS8 ? 512 : (form == Form::kU4 || form == Form::kU4M ? 256 : 320);
}

// The activations of 16 rows, from the tile's first row on. Group strides: q 512, others 16.
struct Int8Rows {
  const int8_t* q;
  const float* scale;
  const float* scaled_sum;    // forms with a minimum
  const int32_t* correction;  // -zero point * sum; other forms
};

// Integer dot products of one group for rows [first, first + kStep). One or two rows get two chains each
// (integer sums are exact in any order).
template <Form kForm, int kStep>
inline void dot_rows(const Int8Rows& x, int first, const Weight* w, Dot* d) {
  constexpr bool kCorrect = !has_min(kForm) && !kSignedBytes<kForm>;
  constexpr int kChains = kStep < kRowsInFlight && kStep <= 2 ? 2 : 1;
  Dot chain[kStep][kChains];
  for (int j = 0; j < kStep; ++j) {
    chain[j][0] = kCorrect ? dot_set1(x.correction[first + j]) : dot_zero();
    if constexpr (kChains == 2) chain[j][1] = dot_zero();
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kStep; ++j) {
      Dot& c = chain[j][i % kChains];
      c = dot<kForm>(c, w[i], x.q + (first + j) * kGroup + 4 * i);
    }
  }
  for (int j = 0; j < kStep; ++j) {
    d[j] = chain[j][0];
    if constexpr (kChains == 2) d[j] = dot_add(d[j], chain[j][1]);
  }
}

// kRows rows x kLanes columns. `part` selects the lanes of the panel. Results land in out[kRows][kLanes].
template <Form kForm, int kRows>
inline void int8_tile(const GemmParams& p, const uint8_t* record, int32_t part, Int8Rows x, Sum* out) {
  constexpr bool kMin = has_min(kForm);
  Sum acc[kRows];
  for (int m = 0; m < kRows; ++m) acc[m] = sum_zero();
  Sum stack[kInt8TreeDepth][kRows];
  int32_t depth = 0;
  int32_t group = 0;
  for (int32_t unit = 0; unit < p.units; ++unit) {
    for (const int32_t end = p.unit_end[unit]; group < end; ++group) {
      Weight w[8];
      load_weights<kForm>(record, part, w);
      const Sum scale = sum_load_half(record + scale_offset(kForm) + part * kLanes * 2);
      Sum min = sum_zero();
      if constexpr (kMin) min = sum_load_half(record + scale_offset(kForm) + 32 + part * kLanes * 2);
      // Rows in fours: their chains of dots hide each other's latency. One flat loop, or g++ keeps acc in
      // memory.
      constexpr int kStep = kRows < kRowsInFlight ? kRows : kRowsInFlight;
      Dot d[kStep];
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        if (m % kStep == 0) dot_rows<kForm, kStep>(x, m, w, d);
        acc[m] = sum_fma(sum_of(d[m % kStep]), sum_mul(scale, sum_set1(x.scale[m])), acc[m]);
        if constexpr (kMin) acc[m] = sum_fma(min, sum_set1(x.scaled_sum[m]), acc[m]);
      }
      record += record_size(kForm);
      x.q += kPanelRows * kGroup;
      x.scale += kPanelRows;
      if constexpr (kMin) {
        x.scaled_sum += kPanelRows;
      } else {
        x.correction += kPanelRows;
      }
    }
    for (int32_t i = p.unit_merges[unit]; i > 0; --i) {
      --depth;
      for (int m = 0; m < kRows; ++m) acc[m] = sum_add(stack[depth][m], acc[m]);
    }
    if (unit + 1 == p.units) break;
    for (int m = 0; m < kRows; ++m) {
      stack[depth][m] = acc[m];
      acc[m] = sum_zero();
    }
    ++depth;
  }
  for (int m = 0; m < kRows; ++m) out[m] = acc[m];
}

inline void store_tile(const GemmParams& p, int32_t row, int32_t rows, int32_t column, const Sum* sums) {
  const int32_t left = p.n - column;
  if (left <= 0) return;
  const int32_t columns = left < kLanes ? left : kLanes;
  const Sum bias = p.bias != nullptr ? sum_load_part(p.bias + column, columns) : sum_zero();
  for (int32_t m = 0; m < rows; ++m) {
    float* out = p.out + (row - p.m_begin + m) * p.out_stride + (column - p.column_begin);
    Sum value = p.bias != nullptr ? sum_add(sums[m], bias) : sums[m];
    if (p.accumulate) value = sum_add(sum_load_part(out, columns), value);
    sum_store_part(out, value, columns);
  }
}

template <Form kForm, int kRows>
inline void run_tile(const GemmParams& p, const uint8_t* panel_data, int32_t panel, int32_t row,
                     const Int8Rows& x) {
  Sum sums[kRows];
  for (int32_t part = 0; part < kPanelRows / kLanes; ++part) {
    int8_tile<kForm, kRows>(p, panel_data, part, x, sums);
    store_tile(p, row, kRows, panel * kPanelRows + part * kLanes, sums);
  }
}

// Rows [row, row + rows) within one block of 16; the rest of a tile is covered by the next smaller one.
template <Form kForm>
inline void int8_block(const GemmParams& p, const uint8_t* panel_data, int32_t panel, int32_t row,
                       int32_t rows, const Int8Rows& block) {
  int32_t m = 0;
  const auto rows_at = [&] {
    return Int8Rows{block.q + m * kGroup, block.scale + m,
                    block.scaled_sum != nullptr ? block.scaled_sum + m : nullptr,
                    block.correction != nullptr ? block.correction + m : nullptr};
  };
  const auto fits = [&](int32_t tile) { return rows - m >= tile; };
  if constexpr (kTileRows >= 16) {
    if (fits(16)) run_tile<kForm, 16>(p, panel_data, panel, row + m, rows_at()), m += 16;
    if (fits(12)) run_tile<kForm, 12>(p, panel_data, panel, row + m, rows_at()), m += 12;
    if (fits(8)) run_tile<kForm, 8>(p, panel_data, panel, row + m, rows_at()), m += 8;
  }
  while (fits(4)) run_tile<kForm, 4>(p, panel_data, panel, row + m, rows_at()), m += 4;
  if (fits(2)) run_tile<kForm, 2>(p, panel_data, panel, row + m, rows_at()), m += 2;
  if (fits(1)) run_tile<kForm, 1>(p, panel_data, panel, row + m, rows_at());
}

template <Form kForm>
inline void gemm_int8_form(const GemmParams& p, int32_t panel_begin, int32_t panel_end) {
  const int32_t groups = p.x.groups;
  const int64_t panel_bytes = record_size(kForm) * groups;
  constexpr bool kCorrect = !has_min(kForm) && !kSignedBytes<kForm>;
  // Blocks of 64 rows whose activations stay in L2; fewer rows where k is so long that they would not.
  const int32_t block_rows = groups > 2048 ? kPanelRows : kInt8TokenBlock;
  const int32_t most = p.m_end - p.m_begin < block_rows ? p.m_end - p.m_begin : block_rows;
  const int32_t tiles = (most + kPanelRows - 1) / kPanelRows;
  const int64_t tile_values = static_cast<int64_t>(groups) * kPanelRows;
  auto* correction = kCorrect ? static_cast<int32_t*>(__builtin_alloca_with_align(
                                    static_cast<unsigned long>(tiles * tile_values) * sizeof(int32_t), 512))
                              : nullptr;
  for (int32_t row = p.m_begin; row < p.m_end; row += block_rows) {
    const int32_t rows = p.m_end - row < block_rows ? p.m_end - row : block_rows;
    const int64_t first = row / kPanelRows * tile_values;
    if constexpr (kCorrect) {
      const int64_t n = (rows + kPanelRows - 1) / kPanelRows * tile_values;
      for (int64_t i = 0; i < n; ++i) correction[i] = -zero_point(kForm) * p.x.group_sum[first + i];
    }
    for (int32_t panel = panel_begin; panel < panel_end; ++panel) {
      const uint8_t* data = p.panels + panel * panel_bytes;
      for (int32_t m = 0; m < rows; m += kPanelRows) {
        const int64_t at = first + m / kPanelRows * tile_values;
        const Int8Rows block{p.x.q + at * kGroup, p.x.scale + at,
                             has_min(kForm) ? p.x.scaled_sum + at : nullptr,
                             kCorrect ? correction + (at - first) : nullptr};
        int8_block<kForm>(p, data, panel, row + m, rows - m < kPanelRows ? rows - m : kPanelRows, block);
      }
    }
  }
}

void gemm_int8(const GemmParams& p, int32_t panel_begin, int32_t panel_end) {
  switch (p.form) {
    case Form::kU4:
      return gemm_int8_form<Form::kU4>(p, panel_begin, panel_end);
    case Form::kU4M:
      return gemm_int8_form<Form::kU4M>(p, panel_begin, panel_end);
    case Form::kU5:
      return gemm_int8_form<Form::kU5>(p, panel_begin, panel_end);
    case Form::kU5M:
      return gemm_int8_form<Form::kU5M>(p, panel_begin, panel_end);
    case Form::kS8:
      return gemm_int8_form<Form::kS8>(p, panel_begin, panel_end);
    default:
      return;  // float forms and file blocks go through gemm_f32
  }
}

}  // namespace
}  // namespace omnibus::kernels
