// Attention core in f32: cache elements widened to float, one chain of fma per score (head dimension
// ascending) and per output (tokens ascending). The same bits on every instruction set. Include after
// attention_impl.h.
#pragma once

#include <cstdint>

namespace omnibus::kernels {
namespace {

template <bool kF32>
inline void load_pairs(const uint8_t* p, F& even, F& odd) {
  if constexpr (kF32) {
    load_pairs_f32(p, even, odd);
  } else {
    load_pairs_bf16(p, even, odd);
  }
}

template <bool kF32>
class WideCore {
 public:
  void prepare(const AttentionTile& t) {
    head_dim_ = t.head_dim;
    for (int32_t r = 0; r < t.rows; ++r) {
      const int32_t token = (t.row_begin + r) / t.group;
      const int32_t head = t.kv_head * t.group + (t.row_begin + r) % t.group;
      q_[r] = t.q + token * t.token_stride + static_cast<int64_t>(head) * t.head_dim;
    }
  }

  float* weights(int32_t row) { return weights_[row]; }
  float exp1(float x) const { return exp_scalar(x); }

  void scores(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t rows) {
    each_row_group(row, rows, [&](auto count, int32_t r) {
      for (int32_t b = 0; b < n_blocks; ++b) score_block<decltype(count)::kValue>(blocks[b], b, r);
    });
  }

  float soften(int32_t row, int32_t n_blocks, float max) {
    F sum = set1(0.0F);
    float* w = weights_[row];
    for (int32_t i = 0; i < n_blocks * kKvBlock; i += 16) {
      const F e = exp_f32(sub(load(w + i), set1(max)));
      store(w + i, e);
      sum = add(sum, e);
    }
    return sum_lanes(sum);
  }

  void values(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t rows, float* out,
              int32_t stride) {
    each_row_group(row, rows, [&](auto count, int32_t r) {
      for (int32_t d = 0; d + 16 <= head_dim_; d += 16) {
        add_values<decltype(count)::kValue>(blocks, n_blocks, r, d, out + r * stride + d, stride);
      }
    });
    for (int32_t r = row; head_dim_ % 16 != 0 && r < row + rows; ++r) {
      add_tail_values(blocks, n_blocks, r, out + r * stride);
    }
  }

 private:
  static constexpr int64_t kElement = kF32 ? 4 : 2;
  template <int kCount>
  struct Count {
    static constexpr int kValue = kCount;
  };

  template <class Body>
  void each_row_group(int32_t row, int32_t rows, Body body) {
    const int32_t end = row + rows;
    if constexpr (kRegisterRows >= 8) {
      for (; end - row >= 8; row += 8) body(Count<8>{}, row);
    }
    for (; end - row >= 4; row += 4) body(Count<4>{}, row);
    if (end - row == 3) body(Count<3>{}, row);
    if (end - row == 2) body(Count<2>{}, row);
    if (end - row == 1) body(Count<1>{}, row);
  }

  template <int kRows>
  void score_block(const uint8_t* block, int32_t b, int32_t row) {
    F acc[kRows];
    for (int r = 0; r < kRows; ++r) acc[r] = set1(0.0F);
    for (int32_t pair = 0; pair < head_dim_ / 2; ++pair) {
      F even;
      F odd;
      load_pairs<kF32>(block + pair * (2 * kKvBlock) * kElement, even, odd);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        acc[r] = fma(set1(q_[row + r][2 * pair]), even, acc[r]);
        acc[r] = fma(set1(q_[row + r][2 * pair + 1]), odd, acc[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) store(weights_[row + r] + b * kKvBlock, acc[r]);
  }

  // 16 output dimensions from d on.
  template <int kRows>
  void add_values(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, int32_t d, float* out,
                  int32_t stride) {
    F acc[kRows];
    for (int r = 0; r < kRows; ++r) acc[r] = load(out + r * stride);
    for (int32_t b = 0; b < n_blocks; ++b) {
      const uint8_t* v = blocks[b] + static_cast<int64_t>(kKvBlock) * head_dim_ * kElement;
      for (int32_t pair = 0; pair < kKvBlock / 2; ++pair) {
        F even;
        F odd;
        load_pairs<kF32>(v + (static_cast<int64_t>(pair) * head_dim_ + d) * 2 * kElement, even, odd);
        const int32_t at = b * kKvBlock + 2 * pair;
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          acc[r] = fma(set1(weights_[row + r][at]), even, acc[r]);
          acc[r] = fma(set1(weights_[row + r][at + 1]), odd, acc[r]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) store(out + r * stride, acc[r]);
  }

  // The dimensions beyond whole vectors, one by one in the same order.
  void add_tail_values(const uint8_t* const* blocks, int32_t n_blocks, int32_t row, float* out) {
    for (int32_t d = head_dim_ / 16 * 16; d < head_dim_; ++d) {
      for (int32_t i = 0; i < n_blocks * kKvBlock; ++i) {
        const uint8_t* v = blocks[i / kKvBlock] + static_cast<int64_t>(kKvBlock) * head_dim_ * kElement;
        const int64_t at = (static_cast<int64_t>(i % kKvBlock / 2) * head_dim_ + d) * 2 + i % 2;
        out[d] = __builtin_fmaf(weights_[row][i], element(v, at), out[d]);
      }
    }
  }

  static float element(const uint8_t* p, int64_t at) {
    float x;
    if constexpr (kF32) {
      __builtin_memcpy(&x, p + at * 4, sizeof x);
    } else {
      uint32_t bits = 0;
      __builtin_memcpy(reinterpret_cast<char*>(&bits) + 2, p + at * 2, 2);
      __builtin_memcpy(&x, &bits, sizeof x);
    }
    return x;
  }

  int32_t head_dim_ = 0;
  const float* q_[kAttentionRows] = {};
  alignas(64) float weights_[kAttentionRows][kAttentionChunk];
};

void attention_wide(const AttentionTile& t) {
  if (t.kv_f32) {
    attention_tile<WideCore<true>>(t);
  } else {
    attention_tile<WideCore<false>>(t);
  }
}

}  // namespace
}  // namespace omnibus::kernels
