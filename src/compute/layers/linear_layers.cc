#include "omnibus/compute/layers/linear_layers.h"

#include <algorithm>

#include "omnibus/compute/loader/shard_view.h"
#include "omnibus/compute/ops/embed.h"
#include "omnibus/compute/ops/linear.h"

namespace omnibus {
namespace {

constexpr int32_t kPanelRows = 16;
constexpr int32_t kVocabUnits = 8;

bool has_peers(const ForwardBatch& batch) { return batch.tp != nullptr && batch.tp->size() > 1; }

Status sum_over_ranks(const ForwardBatch& batch, float* values, size_t count) {
  return batch.tp->all_reduce(batch.comm, {reinterpret_cast<uint8_t*>(values), count * sizeof(float)},
                              DType::kF32, ReduceOp::kSum);
}

}  // namespace

Status ColumnParallelLinear::load(WeightLoader& loader, const std::string& name, int32_t n, int32_t k,
                                  Range rows) {
  LinearSpec spec;
  spec.name = name;
  spec.n = n;
  spec.k = k;
  spec.rows = rows;
  spec.columns = {0, k};
  OMNIBUS_ASSIGN_OR_RETURN(weight_, loader.linear(spec));
  return absl::OkStatus();
}

Status RowParallelLinear::load(WeightLoader& loader, const std::string& name, int32_t n, int32_t k,
                               const UnitCuts& units, Range share) {
  LinearSpec spec;
  spec.name = name;
  spec.n = n;
  spec.k = k;
  spec.rows = {0, n};
  spec.columns = unit_columns(units, share, k);
  spec.units = unit_slice(units, share);
  alone_ = share == Range{0, units.units()};
  spec.with_bias = alone_;
  OMNIBUS_ASSIGN_OR_RETURN(weight_, loader.linear(spec));
  if (!alone_ && loader.has(name + ".bias")) {
    OMNIBUS_ASSIGN_OR_RETURN(bias_, loader.vector(name + ".bias", n, {0, n}));
  }
  return absl::OkStatus();
}

Status RowParallelLinear::forward_residual(const OpContext& ctx, const ForwardBatch& batch,
                                           const Activations& x, float* partial, float* residual) const {
  if (!has_peers(batch)) {
    linear_residual(ctx, {&weight_, &x, residual});
    return absl::OkStatus();
  }
  const auto n = static_cast<size_t>(weight_.n);
  const auto count = static_cast<size_t>(batch.rows()) * n;
  if (weight_.k > 0) {
    linear(ctx, {&weight_, &x, partial});
  } else {
    std::fill(partial, partial + count, -0.0F);  // node(a, -0) = a, bit for bit
  }
  OMNIBUS_RETURN_IF_ERROR(sum_over_ranks(batch, partial, count));
  for (size_t i = 0; i < count; ++i) residual[i] += bias_ == nullptr ? partial[i] : partial[i] + bias_[i % n];
  return absl::OkStatus();
}

Status QkvParallelLinear::load(WeightLoader& loader, const std::string& prefix, const Shape& shape) {
  const int32_t group = shape.heads / shape.kv_heads;
  const auto rows = [&](int64_t per_kv_head) {
    return Range{shape.kv_share.begin * per_kv_head, shape.kv_share.end * per_kv_head};
  };
  ColumnParallelLinear part;
  OMNIBUS_RETURN_IF_ERROR(part.load(loader, prefix + "attn_q", shape.heads * shape.head_dim, shape.hidden,
                                    rows(int64_t{group} * shape.head_dim)));
  q = part.weight();
  OMNIBUS_RETURN_IF_ERROR(part.load(loader, prefix + "attn_k", shape.kv_heads * shape.head_dim, shape.hidden,
                                    rows(shape.head_dim)));
  k = part.weight();
  OMNIBUS_RETURN_IF_ERROR(part.load(loader, prefix + "attn_v", shape.kv_heads * shape.head_dim, shape.hidden,
                                    rows(shape.head_dim)));
  v = part.weight();
  return absl::OkStatus();
}

Range vocab_share(int32_t vocab, const ParallelContext& parallel) {
  const int64_t panels = (vocab + kPanelRows - 1) / kPanelRows;
  const Range units = parallel.tp_range(kVocabUnits);
  const auto first_row = [&](int64_t unit) {
    return std::min<int64_t>(vocab, unit * panels / kVocabUnits * kPanelRows);
  };
  return {first_row(units.begin), first_row(units.end)};
}

Status VocabParallelEmbedding::load(WeightLoader& loader, const std::string& name, int32_t vocab,
                                    int32_t hidden, const ParallelContext& parallel) {
  const Range rows = vocab_share(vocab, parallel);
  first_id_ = static_cast<int32_t>(rows.begin);
  ColumnParallelLinear table;
  OMNIBUS_RETURN_IF_ERROR(table.load(loader, name, vocab, hidden, rows));
  weight_ = table.weight();
  return absl::OkStatus();
}

Status VocabParallelEmbedding::forward(const OpContext& ctx, const ForwardBatch& batch, float* out) const {
  EmbedParams params;
  params.table = &weight_;
  params.ids = batch.token_ids.data();
  params.first_id = first_id_;
  params.m = batch.rows();
  params.out = out;
  embed(ctx, params);
  if (!has_peers(batch)) return absl::OkStatus();
  return sum_over_ranks(batch, out, static_cast<size_t>(batch.rows()) * static_cast<size_t>(weight_.k));
}

}  // namespace omnibus
