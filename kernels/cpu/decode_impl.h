// Weights of a panel as floats: [columns][16 rows], exactly what dequantising gives. Include after a vec_*.h.
#pragma once

#include <cstdint>

#include "omnibus_kernels/gemm.h"

#include "dequant_impl.h"
#include "record_size.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kDecodeColumns = 256;  // one super-block; 16 KiB of floats stay in L1

// Four columns from one dword vector of weight bytes: scale * (byte - zero) (+ min).
template <bool kMin>
inline void decode_dword(I w, F zero, F scale, F min, float* out) {
  const F q[4] = {to_float(byte_of<0>(w)), to_float(byte_of<1>(w)), to_float(byte_of<2>(w)),
                  to_float(byte_of<3>(w))};
  for (int j = 0; j < 4; ++j) {
    const F value = kMin ? add(mul(scale, q[j]), min) : mul(scale, sub(q[j], zero));
    store(out + j * kPanelRows, value);
  }
}

// One record of 32 columns.
template <Form kForm>
inline void decode_record(const uint8_t* record, float* out) {
  constexpr bool kFive = kForm == Form::kU5 || kForm == Form::kU5M;
  constexpr bool kMin = kForm == Form::kU4M || kForm == Form::kU5M;
  constexpr int kScaleAt = kForm == Form::kS8 ? 512 : (kFive ? 320 : 256);
  const F scale = load_half(record + kScaleAt);
  const F min = kMin ? load_half(record + kScaleAt + 32) : set1(0.0F);
  const F zero = set1(kForm == Form::kS8 ? 128.0F : (kFive ? 16.0F : 8.0F));
  for (int i = 0; i < 8; ++i) {
    I w;
    if constexpr (kForm == Form::kS8) {
      w = load_i(record + 64 * i);
    } else {
      const I pair = load_i(record + 64 * (i / 2));
      w = i % 2 == 0 ? low_nibbles(pair) : high_nibbles(pair);
    }
    if constexpr (kFive) {
      uint64_t mask;
      __builtin_memcpy(&mask, record + 256 + 8 * i, sizeof mask);
      w = add16_bytes(w, mask);
    }
    decode_dword<kMin>(w, zero, scale, min, out + 4 * i * kPanelRows);
  }
}

template <Form kForm>
inline void decode_records(const uint8_t* panel, int32_t first, int32_t groups, float* out) {
  for (int32_t g = 0; g < groups; ++g) {
    decode_record<kForm>(panel + (first + g) * record_size(kForm),
                         out + static_cast<int64_t>(g) * kGroup * kPanelRows);
  }
}

inline void decode_blocks(const GemmParams& p, const uint8_t* panel, int32_t column, int32_t columns,
                          float* out) {
  const Decoder& decoder = *find_decoder(p.ggml_type);
  const int64_t first = static_cast<int64_t>(column / decoder.layout.elements) * decoder.layout.bytes;
  alignas(64) float rows[kPanelRows][kDecodeColumns];
  for (int32_t r = 0; r < kPanelRows; ++r) {
    decode_row(p.ggml_type, panel + r * p.row_bytes + first, columns / decoder.layout.elements, rows[r]);
  }
  for (int32_t k = 0; k < columns; k += 16) transpose16(rows[0] + k, kDecodeColumns, out + k * kPanelRows);
}

// Columns [column, column + columns) of the panel, a multiple of 32 (kBlocks: of the block) from a multiple
// of kDecodeColumns on. May return a pointer into the panel itself.
inline const float* decode_columns(const GemmParams& p, const uint8_t* panel, int32_t column, int32_t columns,
                                   float* buffer) {
  const int32_t group = column / kGroup;
  const int32_t groups = columns / kGroup;
  switch (p.form) {
    case Form::kF32:
      return reinterpret_cast<const float*>(panel) + static_cast<int64_t>(column) * kPanelRows;
    case Form::kF16:
      for (int32_t k = 0; k < columns; ++k) {
        store(buffer + k * kPanelRows, load_half(panel + static_cast<int64_t>(column + k) * kPanelRows * 2));
      }
      break;
    case Form::kBF16:
      for (int32_t k = 0; k < columns; k += 2) {
        F even;
        F odd;
        load_pairs_bf16(panel + static_cast<int64_t>(column + k) * kPanelRows * 2, even, odd);
        store(buffer + k * kPanelRows, even);
        store(buffer + (k + 1) * kPanelRows, odd);
      }
      break;
    case Form::kU4:
      decode_records<Form::kU4>(panel, group, groups, buffer);
      break;
    case Form::kU4M:
      decode_records<Form::kU4M>(panel, group, groups, buffer);
      break;
    case Form::kU5:
      decode_records<Form::kU5>(panel, group, groups, buffer);
      break;
    case Form::kU5M:
      decode_records<Form::kU5M>(panel, group, groups, buffer);
      break;
    case Form::kS8:
      decode_records<Form::kS8>(panel, group, groups, buffer);
      break;
    case Form::kBlocks:
      decode_blocks(p, panel, column, columns, buffer);
      break;
  }
  return buffer;
}

}  // namespace
}  // namespace omnibus::kernels
