// Four-wide integer dot products of 16 rows by AVX512-VNNI.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kLanes = 16;
constexpr int32_t kTileRows = 16;
constexpr int kRowsInFlight = 4;  // vpdpbusd: latency 5, two a cycle
template <Form>
constexpr bool kSignedBytes = false;

using Weight = __m512i;
using Dot = __m512i;
using Sum = __m512;

template <Form kForm>
inline void load_weights(const uint8_t* record, int32_t /*part*/, Weight* w) {
  if constexpr (kForm == Form::kS8) {
    for (int i = 0; i < 8; ++i) w[i] = _mm512_loadu_si512(record + 64 * i);
    return;
  }
  const __m512i low = _mm512_set1_epi8(15);
  for (int v = 0; v < 4; ++v) {
    const __m512i pair = _mm512_loadu_si512(record + 64 * v);
    w[2 * v] = _mm512_and_si512(pair, low);
    w[2 * v + 1] = _mm512_and_si512(_mm512_srli_epi16(pair, 4), low);
  }
  if constexpr (kForm == Form::kU5 || kForm == Form::kU5M) {
    for (int i = 0; i < 8; ++i) {
      uint64_t mask;
      __builtin_memcpy(&mask, record + 256 + 8 * i, sizeof mask);
      w[i] = _mm512_mask_add_epi8(w[i], mask, w[i], _mm512_set1_epi8(16));
    }
  }
}

// In assembly because g++ 12 never folds the broadcast into the instruction: a register and a uop more each
// time.
template <Form>
inline Dot dot(Dot d, Weight w, const int8_t* a) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(d) : "v"(w), "m"(*reinterpret_cast<const int32_t*>(a)));
  return d;
}
inline Dot dot_add(Dot a, Dot b) { return _mm512_add_epi32(a, b); }
inline Dot dot_zero() { return _mm512_setzero_si512(); }
inline Dot dot_set1(int32_t x) { return _mm512_set1_epi32(x); }

inline Sum sum_of(Dot d) { return _mm512_cvtepi32_ps(d); }
inline Sum sum_zero() { return _mm512_setzero_ps(); }
inline Sum sum_set1(float x) { return _mm512_set1_ps(x); }
inline Sum sum_add(Sum a, Sum b) { return _mm512_add_ps(a, b); }
inline Sum sum_mul(Sum a, Sum b) { return _mm512_mul_ps(a, b); }
inline Sum sum_fma(Sum a, Sum b, Sum c) { return _mm512_fmadd_ps(a, b, c); }
inline Sum sum_load_half(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __mmask16 first_lanes(int32_t n) { return static_cast<__mmask16>((1U << n) - 1U); }
inline Sum sum_load_part(const float* p, int32_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void sum_store_part(float* p, Sum a, int32_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }

}  // namespace
}  // namespace omnibus::kernels
