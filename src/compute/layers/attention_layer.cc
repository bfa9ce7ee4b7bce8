#include "omnibus/compute/layers/attention_layer.h"

#include <cmath>

#include "omnibus/compute/loader/shard_view.h"

namespace omnibus {

AttentionShare attention_share(const AttentionLayerSpec& spec, const ParallelContext& parallel) {
  AttentionShare out;
  const int32_t group_columns = spec.heads / spec.kv_heads * spec.head_dim;
  const int32_t k = spec.heads * spec.head_dim;
  out.units = UnitCuts::of_kv_groups(k, group_columns);
  out.share = parallel.tp_range(out.units.units());
  const Range columns = unit_columns(out.units, out.share, k);
  out.kv_heads = {columns.begin / group_columns, columns.end / group_columns};
  out.heads = {columns.begin / spec.head_dim, columns.end / spec.head_dim};
  return out;
}

Status AttentionLayer::load(WeightLoader& loader, const std::string& prefix, const AttentionLayerSpec& spec,
                            const ParallelContext& parallel) {
  spec_ = spec;
  if (spec_.scale == 0) spec_.scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim));
  const AttentionShare share = attention_share(spec, parallel);
  heads_ = static_cast<int32_t>(share.heads.size());
  OMNIBUS_RETURN_IF_ERROR(norm_.load(loader, prefix + "attn_norm.weight", spec.hidden, spec.eps));
  QkvParallelLinear::Shape shape;
  shape.hidden = spec.hidden;
  shape.heads = spec.heads;
  shape.kv_heads = spec.kv_heads;
  shape.head_dim = spec.head_dim;
  shape.kv_share = share.kv_heads;
  OMNIBUS_RETURN_IF_ERROR(qkv_.load(loader, prefix, shape));
  if (spec.qk_norm) {
    const Range all{0, spec.head_dim};
    OMNIBUS_ASSIGN_OR_RETURN(q_norm_, loader.vector(prefix + "attn_q_norm.weight", spec.head_dim, all));
    OMNIBUS_ASSIGN_OR_RETURN(k_norm_, loader.vector(prefix + "attn_k_norm.weight", spec.head_dim, all));
  }
  return out_.load(loader, prefix + "attn_output", spec.hidden, spec.heads * spec.head_dim, share.units,
                   share.share);
}

void AttentionLayer::bind(const OpContext& ctx, const DecoderScratch& scratch, const RopeTable& rope) {
  scratch_ = scratch;
  scratch_.normed = narrow(scratch.normed, input_needs(ctx.mode));
  scratch_.attn_out = narrow(scratch.attn_out, output_needs(ctx.mode));
  rope_ = rope;
}

Status AttentionLayer::forward(const OpContext& ctx, const ForwardBatch& batch, const KVCacheView& kv) {
  if (heads_ > 0) {  // else: more ranks than KV groups, and this one only takes part in the sum
    const KVGroupBatch& group = batch.groups[static_cast<size_t>(spec_.kv_group)];
    norm_.forward(ctx, scratch_.residual, nullptr, batch.rows(), &scratch_.normed);
    QkvParams qkv;
    qkv.x = &scratch_.normed;
    qkv.q = &qkv_.q;
    qkv.k = &qkv_.k;
    qkv.v = &qkv_.v;
    qkv.q_norm = q_norm_;
    qkv.k_norm = k_norm_;
    qkv.norm_eps = spec_.eps;
    qkv.rope = rope_;
    qkv.positions = batch.positions.data();
    qkv.slots = group.slots;
    qkv.kv = kv;
    qkv.heads = heads_;
    qkv.scratch = scratch_.wide;
    qkv.q_out = scratch_.q;
    qkv_rope_kv_write(ctx, qkv);

    AttentionParams params;
    params.q = scratch_.q;
    params.kv = kv;
    params.heads = heads_;
    params.scale = spec_.scale;
    params.metadata = &group.metadata;
    params.scratch = scratch_.attention;
    params.out = &scratch_.attn_out;
    group.backend->forward(ctx, params);
  }
  return out_.forward_residual(ctx, batch, scratch_.attn_out, scratch_.partial, scratch_.residual);
}

}  // namespace omnibus
