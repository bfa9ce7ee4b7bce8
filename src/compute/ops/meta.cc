// The meta device: ops count bytes and FLOPs and touch no data.
#include <algorithm>

#include "meta_ops.h"

namespace omnibus {
namespace {

void count_matmul(const OpContext& ctx, const LinearWeight& weight, int64_t m) {
  ctx.trace->flops += 2 * m * weight.n * weight.k;
  ctx.trace->weight_bytes += static_cast<int64_t>(weight.packed.bytes);
}

void meta_embed(const OpContext& ctx, const EmbedParams& p) {
  // Rows, not the table: one row per token.
  ctx.trace->weight_bytes += static_cast<int64_t>(p.table->packed.bytes) / p.table->n * p.m;
}

void meta_norm_quant(const OpContext& ctx, const NormQuantParams& p) {
  ctx.trace->flops += int64_t{4} * p.m * p.out->k;
  ctx.trace->weight_bytes += int64_t{4} * p.out->k;
}

void meta_linear(const OpContext& ctx, const LinearParams& p) { count_matmul(ctx, *p.weight, p.x->m); }
void meta_linear_residual(const OpContext& ctx, const LinearResidualParams& p) {
  count_matmul(ctx, *p.weight, p.x->m);
}

void meta_qkv(const OpContext& ctx, const QkvParams& p) {
  for (const LinearWeight* w : {p.q, p.k, p.v}) count_matmul(ctx, *w, p.x->m);
  ctx.trace->kv_bytes += int64_t{p.x->m} * 2 * p.k->n * dtype_bytes(p.kv.dtype);
}

void meta_attention(const OpContext& ctx, const AttentionParams& p) {
  const AttentionMetadata& metadata = *p.metadata;
  const int64_t window = metadata.window > 0 ? metadata.window : INT32_MAX;
  for (int32_t i = 0; i < metadata.n_sequences; ++i) {
    const AttentionSequence& s = metadata.sequences[i];
    int64_t seen = 0;
    for (int64_t t = s.context - s.n_query; t < s.context; ++t) seen += std::min(t + 1, window);
    ctx.trace->flops += 4 * seen * p.heads * p.kv.head_dim;
    const int64_t read = std::min<int64_t>(s.context, window + s.n_query - 1);
    ctx.trace->kv_bytes += read * 2 * p.kv.kv_heads * p.kv.head_dim * dtype_bytes(p.kv.dtype);
  }
}

void meta_gate_up(const OpContext& ctx, const GateUpParams& p) {
  count_matmul(ctx, *p.gate, p.x->m);
  count_matmul(ctx, *p.up, p.x->m);
}

void meta_head(const OpContext& ctx, const HeadParams& p) { count_matmul(ctx, *p.weight, p.x->m); }

}  // namespace

const OpTable& meta_table() {
  static const OpTable table = {nullptr,  meta_embed,     meta_norm_quant, meta_linear, meta_linear_residual,
                                meta_qkv, meta_attention, meta_gate_up,    meta_head};
  return table;
}

}  // namespace omnibus
