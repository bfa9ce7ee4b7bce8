// Paged attention of a tile of rows that share one kv head (docs/cpu-kernels.md, attention).
#pragma once

#include <cstdint>

namespace omnibus::kernels {

static constexpr int32_t kKvBlock = 16;            // tokens
static constexpr int32_t kAttentionChunk = 128;    // softmax is rescaled at most once per chunk
static constexpr int32_t kAttentionSegment = 256;  // partials are formed per segment and merged in order
static constexpr int32_t kAttentionRows = 8;       // rows of a tile
static constexpr int32_t kMaxHeadDim = 256;

// State of one row: o[d], m, s, with d = head_dim rounded up to 16; rows are d + 16 floats apart.
struct AttentionTile {
  const float* q;        // row 0 of the sequence: [tokens][heads][head_dim]
  int64_t token_stride;  // floats
  const uint8_t* kv;
  bool kv_f32;
  int64_t block_bytes;
  const int32_t* block_table;
  int32_t head_dim, kv_head;
  int32_t group;            // query heads per kv head
  int32_t row_begin, rows;  // rows are token * group + head, rows <= kAttentionRows
  int32_t first_position;   // of token 0 of the sequence's queries
  int32_t context;          // tokens in the cache
  int32_t window;           // > 0: a row sees its last `window` positions
  float scale;
  int32_t segment_begin, segment_end;
  float* state;  // [rows]; overwritten: the merge of segments [segment_begin, segment_end)
};

}  // namespace omnibus::kernels
