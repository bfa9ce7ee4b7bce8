// GatedMlp: norm, act(x G^T) * (x U^T), down projection into the residual. Gate and up rows and down columns
// share one range of units.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/layers/decoder_scratch.h"
#include "omnibus/compute/layers/forward_batch.h"
#include "omnibus/compute/layers/linear_layers.h"
#include "omnibus/compute/layers/rms_norm.h"
#include "omnibus/compute/ops/gate_up_act.h"

namespace omnibus {

struct GatedMlpSpec {
  int32_t hidden = 0, ffn = 0;  // of the whole model
  float eps = 1e-5F;
  GatedActivation activation = GatedActivation::kSilu;
};

// Columns of the down projection that a rank keeps.
Range ffn_share(int32_t ffn, const ParallelContext& parallel);

class GatedMlp {
 public:
  Status load(WeightLoader& loader, const std::string& prefix, const GatedMlpSpec& spec,
              const ParallelContext& parallel);
  void bind(const OpContext& ctx, const DecoderScratch& scratch);
  Status forward(const OpContext& ctx, const ForwardBatch& batch);

  ActivationNeeds input_needs(ActivationMode mode) const {
    return gate_.weight().needs(mode) | up_.weight().needs(mode);
  }
  ActivationNeeds output_needs(ActivationMode mode) const { return down_.weight().needs(mode); }

 private:
  GatedMlpSpec spec_;
  RmsNorm norm_;
  ColumnParallelLinear gate_, up_;
  RowParallelLinear down_;
  DecoderScratch scratch_;
};

}  // namespace omnibus
