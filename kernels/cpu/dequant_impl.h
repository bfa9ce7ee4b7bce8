// The decoders of dequant.h as plain loops, compiled again under each instruction set's flags (no
// contraction, so the same bits).
#pragma once

#include <cstdint>

#include "omnibus_kernels/dequant.h"

namespace omnibus::kernels {
namespace {

inline float float_of(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}

inline float half(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) return float_of(sign | 0x7F800000U | (mantissa << 13));
  if (exponent != 0) return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

inline uint32_t load_u32(const uint8_t* p) {
  uint32_t v = 0;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Element i of a block of 32 nibbles: low nibbles first, then the high ones.
inline int32_t nibble(const uint8_t* qs, int32_t i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

inline void f32_block(const uint8_t* __restrict b, float* __restrict out) {
  __builtin_memcpy(out, b, sizeof(float));
}
inline void f16_block(const uint8_t* __restrict b, float* __restrict out) { *out = half(b); }
inline void bf16_block(const uint8_t* __restrict b, float* __restrict out) {
  *out = float_of(static_cast<uint32_t>(b[0] | (b[1] << 8)) << 16);
}

inline void q4_0_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  for (int32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(b + 2, i) - 8);
}

inline void q4_1_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  const float m = half(b + 2);
  for (int32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
}

inline void q5_0_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  const uint32_t high = load_u32(b + 2);
  for (int32_t i = 0; i < 32; ++i) {
    const int32_t q = nibble(b + 6, i) | static_cast<int32_t>(((high >> i) & 1U) << 4);
    out[i] = d * static_cast<float>(q - 16);
  }
}

inline void q5_1_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  const float m = half(b + 2);
  const uint32_t high = load_u32(b + 4);
  for (int32_t i = 0; i < 32; ++i) {
    const int32_t q = nibble(b + 8, i) | static_cast<int32_t>(((high >> i) & 1U) << 4);
    out[i] = d * static_cast<float>(q) + m;
  }
}

inline void q8_0_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  for (int32_t i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * d;
}

inline void q2_k_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b + 80);
  const float dmin = half(b + 82);
  for (int32_t k = 0; k < 16; ++k) {
    const float scale = d * static_cast<float>(b[k] & 15);
    const float min = dmin * static_cast<float>(b[k] >> 4);
    const uint8_t* qs = b + 16 + 32 * (k / 8) + 16 * (k % 2);
    for (int32_t l = 0; l < 16; ++l) {
      const int32_t q = (qs[l] >> (2 * (k % 8 / 2))) & 3;
      out[16 * k + l] = scale * static_cast<float>(q) - min;
    }
  }
}

inline void q3_k_block(const uint8_t* __restrict b, float* __restrict out) {
  const uint8_t* hmask = b;
  const uint8_t* qs = b + 32;
  const uint8_t* scales = b + 96;
  const float d = half(b + 108);
  float group_scale[16];
  for (int32_t k = 0; k < 16; ++k) {
    const int32_t low = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4;
    const int32_t high = (scales[8 + k % 4] >> (2 * (k / 4))) & 3;
    group_scale[k] = d * static_cast<float>((low | (high << 4)) - 32);
  }
  for (int32_t k = 0; k < 16; ++k) {
    const int32_t n = k / 8;
    const int32_t j = k % 8 / 2;
    const int32_t first = 16 * (k % 2);
    for (int32_t l = first; l < first + 16; ++l) {
      const int32_t high = (hmask[l] >> (4 * n + j)) & 1;
      const int32_t q = ((qs[32 * n + l] >> (2 * j)) & 3) + 4 * high - 4;
      out[32 * (k / 2) + l] = group_scale[k] * static_cast<float>(q);
    }
  }
}

// The 6-bit scale and minimum of sub-block j, as Q4_K and Q5_K pack them in 12 bytes.
inline void scale_min(const uint8_t* s, int32_t j, int32_t& scale, int32_t& min) {
  if (j < 4) {
    scale = s[j] & 63;
    min = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    min = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
  }
}

inline void q4_k_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  const float dmin = half(b + 2);
  for (int32_t j = 0; j < 8; ++j) {
    int32_t scale = 0;
    int32_t min = 0;
    scale_min(b + 4, j, scale, min);
    const float ds = d * static_cast<float>(scale);
    const float dm = dmin * static_cast<float>(min);
    for (int32_t l = 0; l < 32; ++l) {
      const int32_t q = (b[16 + 32 * (j / 2) + l] >> (4 * (j & 1))) & 15;
      out[32 * j + l] = ds * static_cast<float>(q) - dm;
    }
  }
}

inline void q5_k_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b);
  const float dmin = half(b + 2);
  for (int32_t j = 0; j < 8; ++j) {
    int32_t scale = 0;
    int32_t min = 0;
    scale_min(b + 4, j, scale, min);
    const float ds = d * static_cast<float>(scale);
    const float dm = dmin * static_cast<float>(min);
    for (int32_t l = 0; l < 32; ++l) {
      const int32_t low = (b[48 + 32 * (j / 2) + l] >> (4 * (j & 1))) & 15;
      const int32_t q = low | (((b[16 + l] >> j) & 1) << 4);
      out[32 * j + l] = ds * static_cast<float>(q) - dm;
    }
  }
}

inline void q6_k_block(const uint8_t* __restrict b, float* __restrict out) {
  const float d = half(b + 208);
  float group_scale[16];
  for (int32_t k = 0; k < 16; ++k) {
    group_scale[k] = d * static_cast<float>(static_cast<int8_t>(b[192 + k]));
  }
  // Runs of 16 elements share scale and shifts, so that the inner loop is plain.
  for (int32_t k = 0; k < 16; ++k) {
    const int32_t n = k / 8;
    const int32_t g = k % 8 / 2;
    const uint8_t* ql = b + 64 * n + 32 * (g & 1) + 16 * (k % 2);
    const uint8_t* qh = b + 128 + 32 * n + 16 * (k % 2);
    for (int32_t l = 0; l < 16; ++l) {
      const int32_t q = ((ql[l] >> (4 * (g / 2))) & 15) | (((qh[l] >> (2 * g)) & 3) << 4);
      out[16 * k + l] = group_scale[k] * static_cast<float>(q - 32);
    }
  }
}

struct Decoder {
  uint32_t ggml_type;
  const char* name;
  BlockLayout layout;
  void (*block)(const uint8_t*, float*);
};

constexpr Decoder kDecoders[] = {
    {0, "F32", {1, 4}, f32_block},        {1, "F16", {1, 2}, f16_block},
    {2, "Q4_0", {32, 18}, q4_0_block},    {3, "Q4_1", {32, 20}, q4_1_block},
    {6, "Q5_0", {32, 22}, q5_0_block},    {7, "Q5_1", {32, 24}, q5_1_block},
    {8, "Q8_0", {32, 34}, q8_0_block},    {10, "Q2_K", {256, 84}, q2_k_block},
    {11, "Q3_K", {256, 110}, q3_k_block}, {12, "Q4_K", {256, 144}, q4_k_block},
    {13, "Q5_K", {256, 176}, q5_k_block}, {14, "Q6_K", {256, 210}, q6_k_block},
    {30, "BF16", {1, 2}, bf16_block},
};

inline const Decoder* find_decoder(uint32_t ggml_type) {
  for (const Decoder& d : kDecoders) {
    if (d.ggml_type == ggml_type) return &d;
  }
  return nullptr;
}

inline void decode_row(uint32_t ggml_type, const uint8_t* src, int64_t blocks, float* out) {
  const Decoder& d = *find_decoder(ggml_type);
  for (int64_t i = 0; i < blocks; ++i) d.block(src + i * d.layout.bytes, out + i * d.layout.elements);
}

}  // namespace
}  // namespace omnibus::kernels
