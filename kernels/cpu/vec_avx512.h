// 16 floats as one AVX-512 register; see vec_generic.h for what each operation means.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace omnibus::kernels {
namespace {

using F = __m512;
using I = __m512i;

constexpr int32_t kRegisterRows = 8;
constexpr int32_t kF32TileRows = 16;

inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F a) { _mm512_storeu_ps(p, a); }
inline I load_i(const void* p) { return _mm512_loadu_si512(p); }
inline F set1(float x) { return _mm512_set1_ps(x); }
inline I set1_i(int32_t x) { return _mm512_set1_epi32(x); }
inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline F max(F a, F b) { return _mm512_max_ps(a, b); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline F round_even(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline I to_int(F a) { return _mm512_cvttps_epi32(a); }
inline F to_float(I a) { return _mm512_cvtepi32_ps(a); }
inline F scale_by_power(F p, I n) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(n, 23)));
}
inline F zero_where_less(F y, F x, F bound) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, bound, _CMP_NLT_UQ), y);
}
inline I magnitude_bits(F a) {
  return _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7FFFFFFF));
}
inline I max_i(I a, I b) { return _mm512_max_epi32(a, b); }
inline I add_i(I a, I b) { return _mm512_add_epi32(a, b); }
template <int J>
inline I byte_of(I a) {
  return _mm512_and_si512(_mm512_srli_epi32(a, 8 * J), _mm512_set1_epi32(0xFF));
}
inline I add16_bytes(I a, uint64_t mask) { return _mm512_mask_add_epi8(a, mask, a, _mm512_set1_epi8(16)); }
inline I low_nibbles(I a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
inline I high_nibbles(I a) { return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15)); }
inline F load_half(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline void load_pairs_bf16(const void* p, F& even, F& odd) {
  const I x = load_i(p);
  even = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
  odd = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000U))));
}
inline void load_pairs_f32(const void* p, F& even, F& odd) {
  const I pick = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const F a = load(static_cast<const float*>(p));
  const F b = load(static_cast<const float*>(p) + 16);
  even = _mm512_permutex2var_ps(a, pick, b);
  odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(pick, _mm512_set1_epi32(1)), b);
}
inline void store_bytes(int8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}

inline __m128 fold_halves(__m256 t) {
  return _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
}
inline float sum_lanes(F a) {
  const __m256 t8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 t4 = fold_halves(t8);
  const __m128 t2 = _mm_add_ps(t4, _mm_movehl_ps(t4, t4));
  return _mm_cvtss_f32(_mm_add_ss(t2, _mm_shuffle_ps(t2, t2, 1)));
}
inline float max_lanes(F a) {
  const __m256 t8 = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 t4 = _mm_max_ps(_mm256_castps256_ps128(t8), _mm256_extractf128_ps(t8, 1));
  const __m128 t2 = _mm_max_ps(t4, _mm_movehl_ps(t4, t4));
  return _mm_cvtss_f32(_mm_max_ss(t2, _mm_shuffle_ps(t2, t2, 1)));
}
inline int32_t max_lanes_i(I a) { return _mm512_reduce_max_epi32(a); }
inline int32_t sum_lanes_i(I a) { return _mm512_reduce_add_epi32(a); }
inline uint32_t lanes_above(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }

inline __m512 pair_low(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
inline __m512 pair_high(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
// First 4 x 4 within 128-bit lanes, then the lanes: quad[j][g] holds columns 4L + j of rows 4g ... 4g + 3 in
// lane L.
inline void transpose16(const float* in, int64_t stride, float* out) {
  __m512 quad[4][4];
  for (int g = 0; g < 4; ++g) {
    const float* row = in + 4 * g * stride;
    const __m512 a = load(row);
    const __m512 b = load(row + stride);
    const __m512 c = load(row + 2 * stride);
    const __m512 d = load(row + 3 * stride);
    const __m512 ab_low = _mm512_unpacklo_ps(a, b);
    const __m512 ab_high = _mm512_unpackhi_ps(a, b);
    const __m512 cd_low = _mm512_unpacklo_ps(c, d);
    const __m512 cd_high = _mm512_unpackhi_ps(c, d);
    quad[0][g] = pair_low(ab_low, cd_low);
    quad[1][g] = pair_high(ab_low, cd_low);
    quad[2][g] = pair_low(ab_high, cd_high);
    quad[3][g] = pair_high(ab_high, cd_high);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512 even_a = _mm512_shuffle_f32x4(quad[j][0], quad[j][1], 0x88);
    const __m512 even_b = _mm512_shuffle_f32x4(quad[j][2], quad[j][3], 0x88);
    const __m512 odd_a = _mm512_shuffle_f32x4(quad[j][0], quad[j][1], 0xDD);
    const __m512 odd_b = _mm512_shuffle_f32x4(quad[j][2], quad[j][3], 0xDD);
    store(out + 16 * j, _mm512_shuffle_f32x4(even_a, even_b, 0x88));
    store(out + 16 * (4 + j), _mm512_shuffle_f32x4(odd_a, odd_b, 0x88));
    store(out + 16 * (8 + j), _mm512_shuffle_f32x4(even_a, even_b, 0xDD));
    store(out + 16 * (12 + j), _mm512_shuffle_f32x4(odd_a, odd_b, 0xDD));
  }
}

}  // namespace
}  // namespace omnibus::kernels
