// Four-wide integer dot products of 8 rows (half a panel) by AVX2. maddubs adds two products in int16: safe
// for 4- and 5-bit weights. Bytes are made signed and run as |w| * sign(w) a, 128 * 127 * 2 < 32767.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kLanes = 8;
constexpr int32_t kTileRows = 4;
constexpr int kRowsInFlight = 1;  // 16 registers; only the additions form a chain
template <Form kForm>
constexpr bool kSignedBytes = kForm == Form::kS8;

using Weight = __m256i;
using Dot = __m256i;
using Sum = __m256;

inline __m256i load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

template <Form kForm>
inline void load_weights(const uint8_t* record, int32_t part, Weight* w) {
  if constexpr (kForm == Form::kS8) {
    for (int i = 0; i < 8; ++i) {
      w[i] = _mm256_xor_si256(load_bytes(record + 64 * i + 32 * part), _mm256_set1_epi8(-128));
    }
    return;
  }
  for (int v = 0; v < 4; ++v) {
    const __m256i pair = load_bytes(record + 64 * v + 32 * part);
    w[2 * v] = low_half(pair);
    w[2 * v + 1] = high_half(pair);
  }
  if constexpr (kForm == Form::kU5 || kForm == Form::kU5M) {
    for (int i = 0; i < 8; ++i) {
      uint32_t mask;
      __builtin_memcpy(&mask, record + 256 + 8 * i + 4 * part, sizeof mask);
      w[i] = _mm256_add_epi8(w[i], sixteens(mask));
    }
  }
}

template <Form kForm>
inline Dot dot(Dot d, Weight w, const int8_t* a) {
  int32_t four;
  __builtin_memcpy(&four, a, sizeof four);
  const __m256i x = _mm256_set1_epi32(four);
  const __m256i pairs = kSignedBytes<kForm> ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                                            : _mm256_maddubs_epi16(w, x);
  return _mm256_add_epi32(d, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Dot dot_add(Dot a, Dot b) { return _mm256_add_epi32(a, b); }
inline Dot dot_zero() { return _mm256_setzero_si256(); }
inline Dot dot_set1(int32_t x) { return _mm256_set1_epi32(x); }

inline Sum sum_of(Dot d) { return _mm256_cvtepi32_ps(d); }
inline Sum sum_zero() { return _mm256_setzero_ps(); }
inline Sum sum_set1(float x) { return _mm256_set1_ps(x); }
inline Sum sum_add(Sum a, Sum b) { return _mm256_add_ps(a, b); }
inline Sum sum_mul(Sum a, Sum b) { return _mm256_mul_ps(a, b); }
inline Sum sum_fma(Sum a, Sum b, Sum c) { return _mm256_fmadd_ps(a, b, c); }
inline Sum sum_load_half(const uint8_t* p) { return load_half8(p); }
inline __m256i first_lanes(int32_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Sum sum_load_part(const float* p, int32_t n) { return _mm256_maskload_ps(p, first_lanes(n)); }
inline void sum_store_part(float* p, Sum a, int32_t n) { _mm256_maskstore_ps(p, first_lanes(n), a); }

}  // namespace
}  // namespace omnibus::kernels
