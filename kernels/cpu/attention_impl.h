// Attention of a tile: the loop over segments and chunks, masks, running maximum and merge. A Core gives the
// two products and the exponential of one instruction set and cache type:
//   void prepare(const AttentionTile&)                       queries in the form that scores() wants
//   void scores(blocks, n_blocks, row, rows)                 weights_[row][16 * block + token] = q . k
//   float soften(row, n_blocks, max)                         weights become exp(w - max); their sum
//   void values(blocks, n_blocks, row, rows, out, stride)    out[row][d] += weights . v
//   float exp1(x)
// with float* weights(row). Include after math.h.
#pragma once

#include <cstdint>

#include "omnibus_kernels/attention.h"

namespace omnibus::kernels {
namespace {

constexpr int32_t kChunkBlocks = kAttentionChunk / kKvBlock;
constexpr float kMinusInf = -__builtin_inff();

// A row's outputs are padded to whole vectors, so that the maximum and the sum behind them are never
// overwritten.
inline int32_t padded_dim(int32_t head_dim) { return (head_dim + 15) / 16 * 16; }
inline int32_t state_stride(int32_t head_dim) { return padded_dim(head_dim) + 16; }
inline float& state_max(float* row, int32_t head_dim) { return row[padded_dim(head_dim)]; }
inline float& state_sum(float* row, int32_t head_dim) { return row[padded_dim(head_dim) + 1]; }

inline float exp_scalar(float x) {
  alignas(64) float t[16];
  store(t, exp_f32(set1(x)));
  return t[0];
}

inline void scale_row(float* o, int32_t head_dim, float factor) {
  for (int32_t d = 0; d < head_dim; d += 16) store(o + d, mul(load(o + d), set1(factor)));
}

inline void attention_merge(float* state, const float* partial, int32_t rows, int32_t head_dim) {
  const int32_t stride = state_stride(head_dim);
  for (int32_t r = 0; r < rows; ++r) {
    float* a = state + r * stride;
    const float* b = partial + r * stride;
    const float max_b = b[padded_dim(head_dim)];
    const float sum_b = b[padded_dim(head_dim) + 1];
    if (sum_b == 0) continue;  // the row saw nothing of that segment
    if (state_sum(a, head_dim) == 0) {
      __builtin_memcpy(a, b, static_cast<unsigned long>(padded_dim(head_dim) + 2) * sizeof(float));
      continue;
    }
    const float max_a = state_max(a, head_dim);
    const float top = max_a > max_b ? max_a : max_b;
    const float weight_a = exp_scalar(max_a - top);
    const float weight_b = exp_scalar(max_b - top);
    for (int32_t d = 0; d < head_dim; d += 16) {
      store(a + d, fma(load(b + d), set1(weight_b), mul(load(a + d), set1(weight_a))));
    }
    state_max(a, head_dim) = top;
    state_sum(a, head_dim) = __builtin_fmaf(sum_b, weight_b, state_sum(a, head_dim) * weight_a);
  }
}

inline void attention_finish(const float* state, int32_t head_dim, float* out) {
  const float sum = state[padded_dim(head_dim) + 1];
  for (int32_t d = 0; d + 16 <= head_dim; d += 16) store(out + d, div(load(state + d), set1(sum)));
  for (int32_t d = head_dim / 16 * 16; d < head_dim; ++d) out[d] = state[d] / sum;
}

// First and last position that a row sees.
struct Visible {
  int32_t first, last;
};
inline Visible visible(const AttentionTile& t, int32_t row) {
  const int32_t position = t.first_position + (t.row_begin + row) / t.group;
  const int32_t first = t.window > 0 && position >= t.window ? position - t.window + 1 : 0;
  return {first, position};
}

// One row of scores: scaled, masked, maximum of what is left.
inline float mask_row(float* w, int32_t n_blocks, int32_t chunk, Visible seen, float scale) {
  F best = set1(kMinusInf);
  for (int32_t i = 0; i < n_blocks * kKvBlock; i += 16) store(w + i, mul(load(w + i), set1(scale)));
  for (int32_t i = seen.last - chunk + 1 > 0 ? seen.last - chunk + 1 : 0; i < n_blocks * kKvBlock; ++i) {
    w[i] = kMinusInf;
  }
  for (int32_t i = 0; i < seen.first - chunk; ++i) w[i] = kMinusInf;
  for (int32_t i = 0; i < n_blocks * kKvBlock; i += 16) best = max(best, load(w + i));
  return max_lanes(best);
}

// Chunk [chunk, chunk + 128) for the rows [begin, end) of the tile that see any of it.
template <class Core>
inline void attention_chunk(Core& core, const AttentionTile& t, int32_t chunk, int32_t begin, int32_t end,
                            float* state) {
  const int32_t stride = state_stride(t.head_dim);
  const int32_t last = visible(t, end - 1).last;  // rows ascend: nothing of the tile sees further
  const int32_t chunk_end = last + 1 < chunk + kAttentionChunk ? last + 1 : chunk + kAttentionChunk;
  const int32_t n_blocks = (chunk_end - chunk + kKvBlock - 1) / kKvBlock;
  const uint8_t* blocks[kChunkBlocks];
  const int64_t head_bytes = static_cast<int64_t>(t.head_dim) * 2 * kKvBlock * (t.kv_f32 ? 4 : 2);
  for (int32_t b = 0; b < n_blocks; ++b) {
    blocks[b] = t.kv + t.block_table[chunk / kKvBlock + b] * t.block_bytes + t.kv_head * head_bytes;
  }
  core.scores(blocks, n_blocks, begin, end - begin);
  for (int32_t r = begin; r < end; ++r) {
    float* row = state + r * stride;
    const float top = mask_row(core.weights(r), n_blocks, chunk, visible(t, r), t.scale);
    if (top > state_max(row, t.head_dim)) {
      const float factor = core.exp1(state_max(row, t.head_dim) - top);
      scale_row(row, t.head_dim, factor);
      state_sum(row, t.head_dim) *= factor;
      state_max(row, t.head_dim) = top;
    }
    state_sum(row, t.head_dim) += core.soften(r, n_blocks, state_max(row, t.head_dim));
  }
  core.values(blocks, n_blocks, begin, end - begin, state, stride);
}

template <class Core>
inline void attention_segment(Core& core, const AttentionTile& t, int32_t segment, float* state) {
  const int32_t stride = state_stride(t.head_dim);
  for (int32_t r = 0; r < t.rows; ++r) {
    float* row = state + r * stride;
    __builtin_memset(row, 0, static_cast<unsigned long>(padded_dim(t.head_dim) + 2) * sizeof(float));
    state_max(row, t.head_dim) = kMinusInf;
  }
  for (int32_t c = 0; c < kAttentionSegment / kAttentionChunk; ++c) {
    const int32_t chunk = segment * kAttentionSegment + c * kAttentionChunk;
    // Both bounds rise with the row, so the rows that see the chunk are neighbours.
    int32_t begin = 0;
    while (begin < t.rows && visible(t, begin).last < chunk) ++begin;
    int32_t end = t.rows;
    while (end > begin && visible(t, end - 1).first >= chunk + kAttentionChunk) --end;
    if (begin < end) attention_chunk(core, t, chunk, begin, end, state);
  }
}

template <class Core>
inline void attention_tile(const AttentionTile& t) {
  Core core;
  core.prepare(t);
  alignas(64) float partial[kAttentionRows * (kMaxHeadDim + 16)];
  attention_segment(core, t, t.segment_begin, t.state);
  for (int32_t s = t.segment_begin + 1; s < t.segment_end; ++s) {
    attention_segment(core, t, s, partial);
    attention_merge(t.state, partial, t.rows, t.head_dim);
  }
}

}  // namespace
}  // namespace omnibus::kernels
