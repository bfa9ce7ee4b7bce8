// Row-wise kernels over the 16-lane type: the same bits on every instruction set. Include after math.h.
#pragma once

#include <cstdint>

#include "omnibus_kernels/attention.h"
#include "omnibus_kernels/rows.h"

namespace omnibus::kernels {
namespace {

inline int64_t tile_index(const ActStore& out, int32_t row, int32_t group) {
  return (static_cast<int64_t>(row / kPanelRows) * out.groups + group) * kPanelRows + row % kPanelRows;
}

// Writes 32 values (columns of one group) in every form that `out` has.
inline void store_group(const ActStore& out, int32_t row, int32_t group, F y0, F y1) {
  if (out.f32 != nullptr) {
    float* dst = out.f32 + (static_cast<int64_t>(row) * out.groups + group) * kGroup;
    store(dst, y0);
    store(dst + 16, y1);
  }
  if (out.q == nullptr) return;
  const int64_t at = tile_index(out, row, group);
  // The integer maximum of |x|'s bits: the float one would lose NaNs. Inf and NaN poison the scale, so that
  // the row ends as NaN and fails alone.
  const int32_t bits = max_lanes_i(max_i(magnitude_bits(y0), magnitude_bits(y1)));
  float amax;
  __builtin_memcpy(&amax, &bits, sizeof amax);
  float scale = amax / 127.0F;
  float inverse = 127.0F / amax;
  if (bits >= 0x7F800000) {
    scale = __builtin_nanf("");
    inverse = 0;
  } else if (amax < 0x1p-118F) {  // 127 / amax would overflow; such a group is zero
    scale = 0;
    inverse = 0;
  }
  I q0 = set1_i(0);
  I q1 = set1_i(0);
  if (inverse != 0) {
    q0 = to_int(round_even(mul(y0, set1(inverse))));
    q1 = to_int(round_even(mul(y1, set1(inverse))));
  }
  store_bytes(out.q + at * kGroup, q0);
  store_bytes(out.q + at * kGroup + 16, q1);
  const int32_t sum = sum_lanes_i(add_i(q0, q1));
  out.scale[at] = scale;
  out.group_sum[at] = sum;
  if (out.scaled_sum != nullptr) out.scaled_sum[at] = scale * static_cast<float>(sum);
}

// x[k .. k + 16) of a row of n, zeros beyond.
inline F load_padded(const float* x, int32_t k, int32_t n) {
  if (k + 16 <= n) return load(x + k);
  float t[16] = {};
  for (int32_t i = k; i < n; ++i) t[i - k] = x[i];
  return load(t);
}

// Sum of squares: 16 lanes of fma per block of 64, folded, blocks added in order.
inline float sum_squares(const float* x, int32_t n) {
  float sum = 0;
  for (int32_t block = 0; block < n; block += 64) {
    F lanes = set1(0.0F);
    const int32_t end = block + 64 < n ? block + 64 : n;
    for (int32_t k = block; k < end; k += 16) {
      const F v = load_padded(x, k, n);
      lanes = fma(v, v, lanes);
    }
    sum += sum_lanes(lanes);
  }
  return sum;
}

inline float norm_factor(const float* x, int32_t n, float eps) {
  return 1.0F / __builtin_sqrtf(sum_squares(x, n) / static_cast<float>(n) + eps);
}

void rms_norm(const float* x, const float* weight, float eps, int32_t row, const ActStore& out) {
  const F factor = set1(norm_factor(x, out.k, eps));
  for (int32_t g = 0; g < out.groups; ++g) {
    const int32_t k = g * kGroup;
    const F y0 = mul(mul(load_padded(x, k, out.k), factor), load_padded(weight, k, out.k));
    const F y1 = mul(mul(load_padded(x, k + 16, out.k), factor), load_padded(weight, k + 16, out.k));
    store_group(out, row, g, y0, y1);
  }
}

void store_row(const float* x, int32_t row, const ActStore& out) {
  for (int32_t g = 0; g < out.groups; ++g) {
    store_group(out, row, g, load_padded(x, g * kGroup, out.k), load_padded(x, g * kGroup + 16, out.k));
  }
}

inline F gate16(const GatedParams& p, int32_t k, int32_t n) {
  const F gate = load_padded(p.gate, k, n);
  const F up = load_padded(p.up, k, n);
  return mul(p.activation == Gate::kSilu ? silu(gate) : gelu_tanh(gate), up);
}

void gated(const GatedParams& p) {
  const int32_t n = p.out.k - p.group_begin * kGroup;  // columns left from group_begin on
  for (int32_t g = p.group_begin; g < p.group_end; ++g) {
    const int32_t k = (g - p.group_begin) * kGroup;
    store_group(p.out, p.row, g, gate16(p, k, n), gate16(p, k + 16, n));
  }
}

void head_norm(float* head, const float* weight, float eps, int32_t head_dim) {
  const float factor = norm_factor(head, head_dim, eps);
  for (int32_t i = 0; i < head_dim; ++i) head[i] = head[i] * factor * weight[i];
}

void rope(float* head, const RopeParams& p) {
  const int32_t half = p.dims / 2;
  if (p.neox) {
    for (int32_t i = 0; i < half; ++i) {
      const float a = head[i];
      const float b = head[i + half];
      head[i] = a * p.cos[i] - b * p.sin[i];
      head[i + half] = a * p.sin[i] + b * p.cos[i];
    }
    return;
  }
  for (int32_t i = 0; i < half; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * p.cos[i] - b * p.sin[i];
    head[2 * i + 1] = a * p.sin[i] + b * p.cos[i];
  }
}

inline uint16_t to_bf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// K: [head_dim / 2][16][2]; V: [8][head_dim][2].
template <class T, class Convert>
inline void write_kv_head(T* k_dst, T* v_dst, const float* k, const float* v, const KvWriteParams& p,
                          Convert convert) {
  const int32_t end = p.clear_rest ? kKvBlock : p.offset + 1;
  for (int32_t pair = 0; pair < p.head_dim / 2; ++pair) {
    T* dst = k_dst + pair * (2 * kKvBlock);
    dst[2 * p.offset] = convert(k[2 * pair]);
    dst[2 * p.offset + 1] = convert(k[2 * pair + 1]);
    for (int32_t i = 2 * (p.offset + 1); i < 2 * end; ++i) dst[i] = 0;
  }
  T* dst = v_dst + static_cast<int64_t>(p.offset / 2) * p.head_dim * 2 + p.offset % 2;
  for (int32_t d = 0; d < p.head_dim; ++d) dst[2 * d] = convert(v[d]);
  if (!p.clear_rest) return;
  int32_t next = p.offset + 1;
  if (next % 2 == 1) {
    for (int32_t d = 0; d < p.head_dim; ++d) dst[2 * d + 1] = 0;
    ++next;
  }
  T* rest = v_dst + static_cast<int64_t>(next / 2) * p.head_dim * 2;
  for (int32_t i = 0; i < (kKvBlock - next) * p.head_dim; ++i) rest[i] = 0;
}

void kv_write(const KvWriteParams& p) {
  const int64_t half = static_cast<int64_t>(kKvBlock) * p.head_dim;  // elements of K or V of one head
  for (int32_t h = 0; h < p.kv_heads; ++h) {
    const float* k = p.k + static_cast<int64_t>(h) * p.head_dim;
    const float* v = p.v + static_cast<int64_t>(h) * p.head_dim;
    if (p.f32) {
      auto* dst = reinterpret_cast<float*>(p.block) + h * 2 * half;
      write_kv_head(dst, dst + half, k, v, p, [](float x) { return x; });
    } else {
      auto* dst = reinterpret_cast<uint16_t*>(p.block) + h * 2 * half;
      write_kv_head(dst, dst + half, k, v, p, to_bf16);
    }
  }
}

float max_finite(const float* x, int64_t n, bool* finite) {
  F best = set1(-__builtin_inff());
  I bits = set1_i(0);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F v = load(x + i);
    best = max(best, v);
    bits = max_i(bits, magnitude_bits(v));
  }
  float top = max_lanes(best);
  int32_t worst = max_lanes_i(bits);
  for (; i < n; ++i) {
    top = x[i] > top ? x[i] : top;
    int32_t b;
    __builtin_memcpy(&b, x + i, sizeof b);
    b &= 0x7FFFFFFF;
    worst = b > worst ? b : worst;
  }
  *finite = worst < 0x7F800000;
  return top;
}

double sum_exp(const float* x, int64_t n, float max_value) {
  double lanes[16] = {};
  const F m = set1(max_value);
  for (int64_t i = 0; i < n; i += 16) {
    float t[16];
    const int64_t left = n - i < 16 ? n - i : 16;
    for (int64_t j = 0; j < 16; ++j) t[j] = j < left ? x[i + j] : -__builtin_inff();
    store(t, exp_f32(sub(load(t), m)));
    for (int64_t j = 0; j < 16; ++j) lanes[j] += static_cast<double>(t[j]);
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

int64_t above(const float* x, int64_t* at, int64_t n, float threshold, int32_t* ids, int64_t capacity) {
  int64_t count = 0;
  int64_t i = *at;
  const F bound = set1(threshold);
  for (; i + 16 <= n && count + 16 <= capacity; i += 16) {
    for (uint32_t mask = lanes_above(load(x + i), bound); mask != 0; mask &= mask - 1) {
      ids[count++] = static_cast<int32_t>(i + __builtin_ctz(mask));
    }
  }
  for (; i < n && i + 16 > n && count < capacity; ++i) {
    if (x[i] > threshold) ids[count++] = static_cast<int32_t>(i);
  }
  *at = i;
  return count;
}

}  // namespace
}  // namespace omnibus::kernels
