#include "omnibus/compute/layers/decoder_scratch.h"

#include <algorithm>

#include "omnibus/compute/ops/attention.h"

namespace omnibus {
namespace {

StatusOr<float*> floats(Allocator& allocator, int64_t count) {
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer buffer,
                           allocator.allocate(static_cast<size_t>(count) * sizeof(float)));
  return static_cast<float*>(buffer.data);
}

}  // namespace

StatusOr<DecoderScratch> DecoderScratch::allocate(const OpContext& ctx, const DecoderScratchSpec& spec,
                                                  Allocator& allocator) {
  DecoderScratch s;
  const int64_t rows = spec.max_rows;
  const int64_t q_width = int64_t{spec.heads} * spec.head_dim;
  const int64_t qkv_width = q_width + 2 * int64_t{spec.kv_heads} * spec.head_dim;
  OMNIBUS_ASSIGN_OR_RETURN(s.residual, floats(allocator, rows * spec.hidden));
  if (spec.tensor_parallel) {
    OMNIBUS_ASSIGN_OR_RETURN(s.partial, floats(allocator, rows * spec.hidden));
  }
  OMNIBUS_ASSIGN_OR_RETURN(s.wide, floats(allocator, rows * std::max(qkv_width, 2 * int64_t{spec.ffn})));
  OMNIBUS_ASSIGN_OR_RETURN(s.q, floats(allocator, rows * q_width));
  OMNIBUS_ASSIGN_OR_RETURN(
      s.attention, floats(allocator, attention_scratch_floats(ctx, spec.max_rows, spec.heads, spec.head_dim,
                                                              spec.max_context)));
  OMNIBUS_ASSIGN_OR_RETURN(
      s.normed, Activations::allocate(allocator, spec.max_rows, spec.hidden, spec.attn_in | spec.ffn_in));
  if (q_width > 0) {  // a rank may have no share of attention, or of the FFN
    OMNIBUS_ASSIGN_OR_RETURN(s.attn_out, Activations::allocate(allocator, spec.max_rows,
                                                               static_cast<int32_t>(q_width), spec.attn_out));
  }
  if (spec.ffn > 0) {
    OMNIBUS_ASSIGN_OR_RETURN(s.ffn_act,
                             Activations::allocate(allocator, spec.max_rows, spec.ffn, spec.ffn_act));
  }
  return s;
}

Activations narrow(const Activations& activations, ActivationNeeds needs) {
  Activations view = activations;
  view.needs = needs;
  if (!needs.f32) view.f32 = nullptr;
  if (!needs.int8) {
    view.q = nullptr;
    view.scale = nullptr;
    view.group_sum = nullptr;
  }
  if (!needs.scaled_sum) view.scaled_sum = nullptr;
  return view;
}

}  // namespace omnibus
