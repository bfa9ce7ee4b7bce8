// attention: paged causal attention over the KV cache, GQA, one code path for any mix of prompt chunks and
// single tokens. Softmax per chunk of 128 tokens, context in segments of 256 tokens at absolute positions,
// partial results (m, s, o) merged in ascending order: the bits do not depend on chunking, batch or threads.
// Online softmax: Milakov and Gimelshein (2018); FlashDecoding-style split: Dao et al. (2023).
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/kv_cache_view.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// One sequence of the batch. Query token i of it sits at position context - n_query + i and sees positions
// 0..itself.
struct AttentionSequence {
  int32_t first_row = 0;  // in q and out
  int32_t n_query = 0;
  int32_t context = 0;                   // tokens in the cache after this step, n_query included
  const int32_t* block_table = nullptr;  // block ids, ceil(context / 16)
};

// plan() made on the host once per step and KV group.
struct AttentionMetadata {
  const AttentionSequence* sequences = nullptr;
  int32_t n_sequences = 0;
  int32_t m = 0;       // rows of q
  int32_t window = 0;  // > 0: sliding window in tokens
};

struct AttentionParams {
  const float* q = nullptr;  // [m, heads, head_dim], rope applied
  KVCacheView kv;
  int32_t heads = 0;
  float scale = 0;  // usually 1 / sqrt(head_dim)
  const AttentionMetadata* metadata = nullptr;
  float* scratch = nullptr;    // attention_scratch_floats() floats
  Activations* out = nullptr;  // [m, heads * head_dim]; sets out->m
};
// Floats of scratch for a step of at most max_m rows over contexts of at most max_context tokens.
int64_t attention_scratch_floats(const OpContext& ctx, int32_t max_m, int32_t heads, int32_t head_dim,
                                 int32_t max_context);
void attention(const OpContext& ctx, const AttentionParams& params);

}  // namespace omnibus
