// DecoderScratch: the step's temporaries of a decoder stack, shared by all of its layers; taken once at load,
// so that no step allocates.
#pragma once

#include <cstdint>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

struct DecoderScratchSpec {
  int32_t max_rows = 0;     // tokens of a step
  int32_t max_context = 0;  // tokens of a sequence
  int32_t hidden = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0;       // of this rank
  int32_t ffn = 0;                                     // of this rank
  bool tensor_parallel = false;                        // room for partial sums
  ActivationNeeds attn_in, attn_out, ffn_in, ffn_act;  // union over the layers
};

struct DecoderScratch {
  float* residual = nullptr;  // [max_rows, hidden]
  float* partial = nullptr;   // [max_rows, hidden], tensor-parallel only
  float* wide = nullptr;      // [max_rows, max((heads + 2 kv_heads) head_dim, 2 ffn)]: q|k|v, then gate|up
  float* q = nullptr;         // [max_rows, heads, head_dim]
  float* attention = nullptr;
  Activations normed;    // [max_rows, hidden]; attn_in | ffn_in
  Activations attn_out;  // [max_rows, heads * head_dim]
  Activations ffn_act;   // [max_rows, ffn]

  static StatusOr<DecoderScratch> allocate(const OpContext& ctx, const DecoderScratchSpec& spec,
                                           Allocator& allocator);
};

// The same memory with only the forms in `needs`: so that a layer writes what its own weights read.
Activations narrow(const Activations& activations, ActivationNeeds needs);

}  // namespace omnibus
