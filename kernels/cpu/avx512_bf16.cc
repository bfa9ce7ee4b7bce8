// Attention over a bf16 cache by vdpbf16ps: queries and probabilities are rounded to bf16, sums stay f32.
#include "isa_tables.h"
// clang-format off
#include "vec_avx512.h"
#include "math.h"
#include "attention_impl.h"
// clang-format on

namespace omnibus::kernels {
namespace {

// e^x for x <= 0, relative error below 3e-6: 2^n times a polynomial of degree 5 in the fraction of x log2 e.
// -inf gives 0.
inline __m512 exp_fast(__m512 x) {
  const __m512 t = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504F));
  const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f =
      _mm512_sub_ps(_mm512_max_ps(_mm512_set1_ps(-200.0F), t), _mm512_max_ps(_mm512_set1_ps(-200.0F), n));
  __m512 p = _mm512_set1_ps(1.3333558e-3F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.6181291e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.5504109e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4022651e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.9314718e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

inline __m512bh bf16_pairs(const void* p) { return (__m512bh)_mm512_loadu_si512(p); }
inline __m512bh bf16_broadcast(uint32_t pair) {
  return (__m512bh)_mm512_set1_epi32(static_cast<int32_t>(pair));
}
inline void store_bf16(void* p, __m512 x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
}

template <int kN>
struct Constant {
  static constexpr int kValue = kN;
};

class Bf16Core {
 public:
  void prepare(const AttentionTile& t) {
    head_dim_ = t.head_dim;
    for (int32_t r = 0; r < t.rows; ++r) {
      const int32_t token = (t.row_begin + r) / t.group;
      const int32_t head = t.kv_head * t.group + (t.row_begin + r) % t.group;
      const float* q = t.q + token * t.token_stride + static_cast<int64_t>(head) * t.head_dim;
      for (int32_t d = 0; d < head_dim_; d += 16) store_bf16(q_[r] + d / 2, _mm512_loadu_ps(q + d));
    }
  }

  float* weights(int32_t row) { return weights_[row]; }
  float exp1(float x) const { return _mm512_cvtss_f32(exp_fast(_mm512_set1_ps(x))); }

  // Several blocks at once: each score is one chain over the head dimension, so chains must come from
  // elsewhere.
  void scores(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t rows) {
    each_rows<8>(row, rows, [&](auto count, int32_t r) {
      constexpr int kRows = decltype(count)::kValue;
      constexpr int kWide = kRows <= 4 ? 4 : 2;
      int32_t b = 0;
      for (; n_blocks - b >= kWide; b += kWide) score_blocks<kRows, kWide>(blocks + b, b, r);
      for (; b < n_blocks; ++b) score_blocks<kRows, 1>(blocks + b, b, r);
    });
  }

  // In place: the row's first half becomes bf16 pairs.
  float soften(int32_t row, int32_t n_blocks, float max) {
    __m512 sum = _mm512_setzero_ps();
    float* w = weights_[row];
    auto* halves = reinterpret_cast<uint16_t*>(w);
    for (int32_t i = 0; i < n_blocks * kKvBlock; i += 16) {
      const __m512 e = exp_fast(_mm512_sub_ps(_mm512_loadu_ps(w + i), _mm512_set1_ps(max)));
      sum = _mm512_add_ps(sum, e);
      store_bf16(halves + i, e);
    }
    return sum_lanes(sum);
  }

  void values(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t rows, float* out,
              int32_t stride) {
    each_rows<4>(row, rows, [&](auto count, int32_t r) {
      constexpr int kRows = decltype(count)::kValue;
      float* o = out + r * stride;
      int32_t d = 0;
      for (; head_dim_ - d >= 64; d += 64) add_values<kRows, 4>(blocks, n_blocks, r, d, o + d, stride);
      for (; head_dim_ - d >= 32; d += 32) add_values<kRows, 2>(blocks, n_blocks, r, d, o + d, stride);
      for (; d < head_dim_; d += 16) add_values<kRows, 1>(blocks, n_blocks, r, d, o + d, stride);
    });
  }

 private:
  template <int kMost, class Body>
  void each_rows(int32_t row, int32_t rows, Body body) {
    const int32_t end = row + rows;
    if constexpr (kMost >= 8) {
      for (; end - row >= 8; row += 8) body(Constant<8>{}, row);
      if (end - row >= 6) body(Constant<6>{}, row), row += 6;
    }
    for (; end - row >= 4; row += 4) body(Constant<4>{}, row);
    if (end - row == 3) body(Constant<3>{}, row);
    if (end - row == 2) body(Constant<2>{}, row);
    if (end - row == 1) body(Constant<1>{}, row);
  }

  template <int kRows, int kBlocks>
  void score_blocks(const uint8_t* const* blocks, int32_t b, int32_t row) {
    __m512 acc[kRows][kBlocks];
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kBlocks; ++j) acc[r][j] = _mm512_setzero_ps();
    }
    for (int32_t pair = 0; pair < head_dim_ / 2; ++pair) {
      __m512bh k[kBlocks];
#pragma GCC unroll 4
      for (int j = 0; j < kBlocks; ++j) k[j] = bf16_pairs(blocks[j] + pair * 64);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512bh q = bf16_broadcast(q_[row + r][pair]);
#pragma GCC unroll 4
        for (int j = 0; j < kBlocks; ++j) acc[r][j] = _mm512_dpbf16_ps(acc[r][j], k[j], q);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kBlocks; ++j) _mm512_storeu_ps(weights_[row + r] + (b + j) * kKvBlock, acc[r][j]);
    }
  }

  // 16 * kVectors output dimensions from d on.
  template <int kRows, int kVectors>
  void add_values(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t d, float* out,
                  int32_t stride) {
    __m512 acc[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kVectors; ++j) acc[r][j] = _mm512_loadu_ps(out + r * stride + 16 * j);
    }
    for (int32_t b = 0; b < n_blocks; ++b) {
      const uint8_t* v = blocks[b] + static_cast<int64_t>(kKvBlock) * head_dim_ * 2 + d * 4;
      for (int32_t pair = 0; pair < kKvBlock / 2; ++pair, v += static_cast<int64_t>(head_dim_) * 4) {
        __m512bh x[kVectors];
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; ++j) x[j] = bf16_pairs(v + 64 * j);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          uint32_t both;
          __builtin_memcpy(&both, weights_[row + r] + b * (kKvBlock / 2) + pair, sizeof both);
          const __m512bh p = bf16_broadcast(both);
#pragma GCC unroll 4
          for (int j = 0; j < kVectors; ++j) acc[r][j] = _mm512_dpbf16_ps(acc[r][j], x[j], p);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kVectors; ++j) _mm512_storeu_ps(out + r * stride + 16 * j, acc[r][j]);
    }
  }

  int32_t head_dim_ = 0;
  alignas(64) uint32_t q_[kAttentionRows][kMaxHeadDim / 2];
  alignas(64) float weights_[kAttentionRows][kAttentionChunk];
};

}  // namespace

void attention_bf16(const AttentionTile& t) { attention_tile<Bf16Core>(t); }

}  // namespace omnibus::kernels
