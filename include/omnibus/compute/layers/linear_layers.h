// Parallel linears: which part of a matrix a rank keeps is decided here, at load; forward() reads as if there
// were one device. Megatron-LM's column/row scheme (Shoeybi et al., 2019) over uneven ranges of shard units.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/communicator.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/layers/forward_batch.h"
#include "omnibus/compute/loader/weight_loader.h"
#include "omnibus/compute/ops/linear_weight.h"

namespace omnibus {

// y = x W^T for a range of the output rows; no communication.
class ColumnParallelLinear {
 public:
  Status load(WeightLoader& loader, const std::string& name, int32_t n, int32_t k, Range rows);
  const LinearWeight& weight() const { return weight_; }

 private:
  LinearWeight weight_;
};

// residual += x W^T (+ bias), where x is the rank's range of columns. With tp > 1: product, all_reduce,
// residual add; a rank without columns sends -0.
class RowParallelLinear {
 public:
  // `units` are the cuts of all k columns, `share` the rank's range of them.
  Status load(WeightLoader& loader, const std::string& name, int32_t n, int32_t k, const UnitCuts& units,
              Range share);
  const LinearWeight& weight() const { return weight_; }
  // partial: scratch [rows, n], used with tp > 1 only.
  Status forward_residual(const OpContext& ctx, const ForwardBatch& batch, const Activations& x,
                          float* partial, float* residual) const;

 private:
  LinearWeight weight_;  // without bias when there are several ranks
  const float* bias_ = nullptr;
  bool alone_ = true;
};

// The three input projections of attention, cut by groups of KV heads.
struct QkvParallelLinear {
  LinearWeight q, k, v;

  struct Shape {
    int32_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;  // of the whole model
    Range kv_share;                                             // this rank's KV heads
  };
  // `prefix`: "blk.0." for "blk.0.attn_q" and so on.
  Status load(WeightLoader& loader, const std::string& prefix, const Shape& shape);
  ActivationNeeds needs(ActivationMode mode) const { return q.needs(mode) | k.needs(mode) | v.needs(mode); }
};

// The embedding table, cut by ranges of vocabulary panels; also the head where the model ties them.
class VocabParallelEmbedding {
 public:
  Status load(WeightLoader& loader, const std::string& name, int32_t vocab, int32_t hidden,
              const ParallelContext& parallel);
  // out [rows, hidden]; ids of other ranks come by the sum over ranks.
  Status forward(const OpContext& ctx, const ForwardBatch& batch, float* out) const;
  const LinearWeight& weight() const { return weight_; }
  int32_t first_id() const { return first_id_; }

 private:
  LinearWeight weight_;
  int32_t first_id_ = 0;
};

// This rank's ids: panels of 16 in 8 units (docs/cpu-kernels.md).
Range vocab_share(int32_t vocab, const ParallelContext& parallel);

}  // namespace omnibus
