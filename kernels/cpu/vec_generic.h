// 16 floats in plain C++: the meaning of every operation that the SIMD headers implement.
#pragma once

#include <cstdint>
#include <cstring>

namespace omnibus::kernels {
namespace {

struct F {
  float v[16];
};
struct I {
  int32_t v[16];
};

// Rows of an attention tile that fit the registers together.
constexpr int32_t kRegisterRows = 4;
constexpr int32_t kF32TileRows = 4;

inline float bits_to_float(uint32_t b) {
  float f;
  std::memcpy(&f, &b, sizeof f);
  return f;
}
inline uint32_t float_to_bits(float f) {
  uint32_t b;
  std::memcpy(&b, &f, sizeof b);
  return b;
}

inline F load(const float* p) {
  F r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void store(float* p, const F& a) { std::memcpy(p, a.v, sizeof a.v); }
inline I load_i(const void* p) {
  I r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}

#define OMNIBUS_LANES(type, expression) \
  type r;                               \
  for (int i = 0; i < 16; ++i) {        \
    r.v[i] = (expression);              \
  }                                     \
  return r
inline F set1(float x) { OMNIBUS_LANES(F, x); }
inline I set1_i(int32_t x) { OMNIBUS_LANES(I, x); }
inline F add(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] + b.v[i]); }
inline F sub(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] - b.v[i]); }
inline F mul(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] * b.v[i]); }
inline F div(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] / b.v[i]); }
inline F fma(const F& a, const F& b, const F& c) { OMNIBUS_LANES(F, __builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
// The second operand wins when either is NaN, as maxps and minps have it.
inline F max(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline F min(const F& a, const F& b) { OMNIBUS_LANES(F, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
// To nearest even; |x| < 2^22.
inline F round_even(const F& a) { OMNIBUS_LANES(F, __builtin_nearbyintf(a.v[i])); }
inline I to_int(const F& a) { OMNIBUS_LANES(I, static_cast<int32_t>(a.v[i])); }  // of whole numbers
inline F to_float(const I& a) { OMNIBUS_LANES(F, static_cast<float>(a.v[i])); }
// p * 2^n while the result stays normal.
inline F scale_by_power(const F& p, const I& n) {
  OMNIBUS_LANES(F, bits_to_float(float_to_bits(p.v[i]) + (static_cast<uint32_t>(n.v[i]) << 23)));
}
inline F zero_where_less(const F& y, const F& x, const F& bound) {
  OMNIBUS_LANES(F, x.v[i] < bound.v[i] ? 0.0F : y.v[i]);
}
inline I magnitude_bits(const F& a) {
  OMNIBUS_LANES(I, static_cast<int32_t>(float_to_bits(a.v[i]) & 0x7FFFFFFFU));
}
inline I max_i(const I& a, const I& b) { OMNIBUS_LANES(I, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline I add_i(const I& a, const I& b) { OMNIBUS_LANES(I, a.v[i] + b.v[i]); }
// Byte j of each dword, unsigned.
template <int J>
inline I byte_of(const I& a) {
  OMNIBUS_LANES(I, static_cast<int32_t>((static_cast<uint32_t>(a.v[i]) >> (8 * J)) & 0xFFU));
}
// a + 16 in the bytes whose bit is set: bit 4r + j is byte j of dword r.
inline I add16_bytes(const I& a, uint64_t mask) {
  I r = a;
  for (int b = 0; b < 64; ++b) r.v[b / 4] += static_cast<int32_t>((mask >> b) & 1U) << (4 + 8 * (b % 4));
  return r;
}
inline I low_nibbles(const I& a) { OMNIBUS_LANES(I, a.v[i] & 0x0F0F0F0F); }
inline I high_nibbles(const I& a) {
  OMNIBUS_LANES(I, static_cast<int32_t>((static_cast<uint32_t>(a.v[i]) >> 4) & 0x0F0F0F0FU));
}

inline float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) return bits_to_float(sign | 0x7F800000U | (mantissa << 13));
  if (exponent != 0) return bits_to_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}
inline F load_half(const void* p) {
  uint16_t bits[16];
  std::memcpy(bits, p, sizeof bits);
  OMNIBUS_LANES(F, half_to_float(bits[i]));
}
// 16 pairs of bf16 (a, b): all a, all b.
inline void load_pairs_bf16(const void* p, F& even, F& odd) {
  uint32_t bits[16];
  std::memcpy(bits, p, sizeof bits);
  for (int i = 0; i < 16; ++i) {
    even.v[i] = bits_to_float(bits[i] << 16);
    odd.v[i] = bits_to_float(bits[i] & 0xFFFF0000U);
  }
}
inline void load_pairs_f32(const void* p, F& even, F& odd) {
  float x[32];
  std::memcpy(x, p, sizeof x);
  for (int i = 0; i < 16; ++i) {
    even.v[i] = x[2 * i];
    odd.v[i] = x[2 * i + 1];
  }
}
inline void store_bytes(int8_t* p, const I& a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}

// Lanes are folded in halves: 8, 4, 2, 1.
inline float sum_lanes(const F& a) {
  F t = a;
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) t.v[i] = t.v[i] + t.v[i + half];
  }
  return t.v[0];
}
inline float max_lanes(const F& a) {
  F t = a;
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) t.v[i] = t.v[i] > t.v[i + half] ? t.v[i] : t.v[i + half];
  }
  return t.v[0];
}
inline int32_t max_lanes_i(const I& a) {
  int32_t m = a.v[0];
  for (int i = 1; i < 16; ++i) m = m > a.v[i] ? m : a.v[i];
  return m;
}
inline int32_t sum_lanes_i(const I& a) {
  int32_t s = 0;
  for (int i = 0; i < 16; ++i) s += a.v[i];
  return s;
}
inline uint32_t lanes_above(const F& a, const F& b) {  // bit i: a > b
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= static_cast<uint32_t>(a.v[i] > b.v[i]) << i;
  return mask;
}
#undef OMNIBUS_LANES

// 16 rows of 16 columns, row r at in + r * stride, to [column][row].
inline void transpose16(const float* in, int64_t stride, float* out) {
  for (int k = 0; k < 16; ++k) {
    for (int r = 0; r < 16; ++r) out[16 * k + r] = in[r * stride + k];
  }
}

}  // namespace
}  // namespace omnibus::kernels
