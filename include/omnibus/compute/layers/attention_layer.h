// AttentionLayer: norm, q/k/v with rope into the cache, paged attention, output projection into the residual.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/layers/decoder_scratch.h"
#include "omnibus/compute/layers/forward_batch.h"
#include "omnibus/compute/layers/linear_layers.h"
#include "omnibus/compute/layers/rms_norm.h"
#include "omnibus/compute/ops/qkv_rope_kv_write.h"

namespace omnibus {

struct AttentionLayerSpec {
  int32_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;  // of the whole model
  float eps = 1e-5F;
  bool qk_norm = false;
  int32_t kv_group = 0;
  float scale = 0;  // of scores; 0: 1 / sqrt(head_dim)
};

// A rank's part of attention: whole units of the output projection, hence whole KV heads.
struct AttentionShare {
  UnitCuts units;  // of all heads * head_dim columns of the output projection
  Range share;     // this rank's units
  Range kv_heads, heads;
};
AttentionShare attention_share(const AttentionLayerSpec& spec, const ParallelContext& parallel);

class AttentionLayer {
 public:
  // `prefix`: "blk.0.".
  Status load(WeightLoader& loader, const std::string& prefix, const AttentionLayerSpec& spec,
              const ParallelContext& parallel);
  // After all weights are loaded, since the scratch is shaped by them.
  void bind(const OpContext& ctx, const DecoderScratch& scratch, const RopeTable& rope);
  Status forward(const OpContext& ctx, const ForwardBatch& batch, const KVCacheView& kv);

  ActivationNeeds input_needs(ActivationMode mode) const { return qkv_.needs(mode); }
  ActivationNeeds output_needs(ActivationMode mode) const { return out_.weight().needs(mode); }

 private:
  AttentionLayerSpec spec_;
  int32_t heads_ = 0;  // of this rank
  RmsNorm norm_;
  QkvParallelLinear qkv_;
  const float* q_norm_ = nullptr;
  const float* k_norm_ = nullptr;
  RowParallelLinear out_;
  DecoderScratch scratch_;
  RopeTable rope_;
};

}  // namespace omnibus
