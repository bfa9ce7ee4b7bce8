// gate_up_act: the gated first half of a feed-forward block: act(x G^T) * (x U^T), quantised for the down
// projection. SwiGLU: Shazeer, "GLU variants improve transformer" (2020).
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

enum class GatedActivation : uint8_t { kSilu, kGeluTanh };

struct GateUpParams {
  const Activations* x = nullptr;  // [m, k]
  const LinearWeight* gate = nullptr;
  const LinearWeight* up = nullptr;
  GatedActivation activation = GatedActivation::kSilu;
  float* scratch = nullptr;    // [m, 2 * n]
  Activations* out = nullptr;  // [m, n]; sets out->m
};
void gate_up_act(const OpContext& ctx, const GateUpParams& params);

}  // namespace omnibus
