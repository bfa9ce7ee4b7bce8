// 16 floats as two AVX2 registers; see vec_generic.h for what each operation means.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace omnibus::kernels {
namespace {

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};

constexpr int32_t kRegisterRows = 4;
constexpr int32_t kF32TileRows = 4;

inline __m256i load_256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline I load_i(const void* p) { return {load_256(p), load_256(static_cast<const char*>(p) + 32)}; }
inline F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline I set1_i(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F round_even(F x) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kMode), _mm256_round_ps(x.b, kMode)};
}
inline I to_int(F x) { return {_mm256_cvttps_epi32(x.a), _mm256_cvttps_epi32(x.b)}; }
inline F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline __m256 scale_half(__m256 p, __m256i n) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(n, 23)));
}
inline F scale_by_power(F p, I n) { return {scale_half(p.a, n.a), scale_half(p.b, n.b)}; }
inline F zero_where_less(F y, F x, F bound) {
  return {_mm256_and_ps(y.a, _mm256_cmp_ps(x.a, bound.a, _CMP_NLT_UQ)),
          _mm256_and_ps(y.b, _mm256_cmp_ps(x.b, bound.b, _CMP_NLT_UQ))};
}
inline I magnitude_bits(F x) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  return {_mm256_and_si256(_mm256_castps_si256(x.a), mask), _mm256_and_si256(_mm256_castps_si256(x.b), mask)};
}
inline I max_i(I x, I y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
inline I add_i(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
template <int J>
inline I byte_of(I x) {
  const __m256i mask = _mm256_set1_epi32(0xFF);
  return {_mm256_and_si256(_mm256_srli_epi32(x.a, 8 * J), mask),
          _mm256_and_si256(_mm256_srli_epi32(x.b, 8 * J), mask)};
}
// 16 in each byte whose bit of `mask` is set.
inline __m256i sixteens(uint32_t mask) {
  const __m256i spread =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(mask)),
                          _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                                           2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ULL));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit), _mm256_set1_epi8(16));
}
inline I add16_bytes(I x, uint64_t mask) {
  return {_mm256_add_epi8(x.a, sixteens(static_cast<uint32_t>(mask))),
          _mm256_add_epi8(x.b, sixteens(static_cast<uint32_t>(mask >> 32)))};
}
inline __m256i low_half(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
inline __m256i high_half(__m256i x) {
  return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}
inline I low_nibbles(I x) { return {low_half(x.a), low_half(x.b)}; }
inline I high_nibbles(I x) { return {high_half(x.a), high_half(x.b)}; }
inline __m256 load_half8(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline F load_half(const void* p) { return {load_half8(p), load_half8(static_cast<const char*>(p) + 16)}; }
inline void load_pairs_bf16(const void* p, F& even, F& odd) {
  const I x = load_i(p);
  const __m256i high = _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000U));
  even = {_mm256_castsi256_ps(_mm256_slli_epi32(x.a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(x.b, 16))};
  odd = {_mm256_castsi256_ps(_mm256_and_si256(x.a, high)), _mm256_castsi256_ps(_mm256_and_si256(x.b, high))};
}
// Eight pairs: all first, all second.
inline void split_pairs8(const float* p, __m256& even, __m256& odd) {
  const __m256 x = _mm256_loadu_ps(p);
  const __m256 y = _mm256_loadu_ps(p + 8);
  const __m256 e = _mm256_shuffle_ps(x, y, 0x88);  // x0 x2 y0 y2 | x4 x6 y4 y6
  const __m256 o = _mm256_shuffle_ps(x, y, 0xDD);
  even = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(e), 0xD8));
  odd = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(o), 0xD8));
}
inline void load_pairs_f32(const void* p, F& even, F& odd) {
  split_pairs8(static_cast<const float*>(p), even.a, odd.a);
  split_pairs8(static_cast<const float*>(p) + 16, even.b, odd.b);
}
inline void store_bytes(int8_t* p, I x) {
  // packs works within 128-bit lanes: a0-3 b0-3 | a4-7 b4-7; put the dwords of bytes back in order.
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

inline float sum_lanes(F x) {
  const __m256 t8 = _mm256_add_ps(x.a, x.b);
  const __m128 t4 = _mm_add_ps(_mm256_castps256_ps128(t8), _mm256_extractf128_ps(t8, 1));
  const __m128 t2 = _mm_add_ps(t4, _mm_movehl_ps(t4, t4));
  return _mm_cvtss_f32(_mm_add_ss(t2, _mm_shuffle_ps(t2, t2, 1)));
}
inline float max_lanes(F x) {
  const __m256 t8 = _mm256_max_ps(x.a, x.b);
  const __m128 t4 = _mm_max_ps(_mm256_castps256_ps128(t8), _mm256_extractf128_ps(t8, 1));
  const __m128 t2 = _mm_max_ps(t4, _mm_movehl_ps(t4, t4));
  return _mm_cvtss_f32(_mm_max_ss(t2, _mm_shuffle_ps(t2, t2, 1)));
}
inline int32_t max_lanes_i(I x) {
  const __m256i t8 = _mm256_max_epi32(x.a, x.b);
  __m128i t = _mm_max_epi32(_mm256_castsi256_si128(t8), _mm256_extracti128_si256(t8, 1));
  t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4E));
  t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xB1));
  return _mm_cvtsi128_si32(t);
}
inline int32_t sum_lanes_i(I x) {
  const __m256i t8 = _mm256_add_epi32(x.a, x.b);
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(t8), _mm256_extracti128_si256(t8, 1));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4E));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xB1));
  return _mm_cvtsi128_si32(t);
}
inline uint32_t lanes_above(F x, F y) {
  const auto low = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ)));
  const auto high = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ)));
  return low | (high << 8);
}

inline __m256 pair_low(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
inline __m256 pair_high(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
// 8 x 8; rows of `out` are 16 floats apart.
inline void transpose8(const float* in, int64_t stride, float* out) {
  __m256 quad[4][2];  // quad[j][g]: columns 4L + j of rows 4g ... 4g + 3 in lane L
  for (int g = 0; g < 2; ++g) {
    const float* row = in + 4 * g * stride;
    const __m256 a = _mm256_loadu_ps(row);
    const __m256 b = _mm256_loadu_ps(row + stride);
    const __m256 c = _mm256_loadu_ps(row + 2 * stride);
    const __m256 d = _mm256_loadu_ps(row + 3 * stride);
    const __m256 ab_low = _mm256_unpacklo_ps(a, b);
    const __m256 ab_high = _mm256_unpackhi_ps(a, b);
    const __m256 cd_low = _mm256_unpacklo_ps(c, d);
    const __m256 cd_high = _mm256_unpackhi_ps(c, d);
    quad[0][g] = pair_low(ab_low, cd_low);
    quad[1][g] = pair_high(ab_low, cd_low);
    quad[2][g] = pair_low(ab_high, cd_high);
    quad[3][g] = pair_high(ab_high, cd_high);
  }
  for (int j = 0; j < 4; ++j) {
    _mm256_storeu_ps(out + 16 * j, _mm256_permute2f128_ps(quad[j][0], quad[j][1], 0x20));
    _mm256_storeu_ps(out + 16 * (4 + j), _mm256_permute2f128_ps(quad[j][0], quad[j][1], 0x31));
  }
}
inline void transpose16(const float* in, int64_t stride, float* out) {
  transpose8(in, stride, out);
  transpose8(in + 8 * stride, stride, out + 8);
  transpose8(in + 8, stride, out + 16 * 8);
  transpose8(in + 8 * stride + 8, stride, out + 16 * 8 + 8);
}

}  // namespace
}  // namespace omnibus::kernels
