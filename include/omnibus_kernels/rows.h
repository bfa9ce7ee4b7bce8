// Row-wise kernels: norm, quantisation, gated activation, rotary embedding, writes into the KV cache.
#pragma once

#include <cstdint>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {

enum class Gate : uint8_t { kSilu, kGeluTanh };

// Groups [group_begin, group_end) of out row `row` from act(gate) * up; gate and up point at column
// group_begin * 32.
struct GatedParams {
  const float* gate;
  const float* up;
  Gate activation;
  int32_t row;
  int32_t group_begin, group_end;
  ActStore out;
};

struct RopeParams {
  const float* cos;  // [dims / 2] of the position
  const float* sin;
  int32_t dims;
  bool neox;
};

// One token's K or V of all kv heads.
struct KvWriteParams {
  const float* k;  // [kv_heads][head_dim]
  const float* v;
  uint8_t* block;  // of the token
  int32_t offset;  // of the token in the block
  int32_t kv_heads, head_dim;
  bool f32;
  bool clear_rest;  // zero the slots after `offset`
};

}  // namespace omnibus::kernels
