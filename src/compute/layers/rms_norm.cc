#include "omnibus/compute/layers/rms_norm.h"

namespace omnibus {

Status RmsNorm::load(WeightLoader& loader, const std::string& name, int32_t width, float eps) {
  eps_ = eps;
  OMNIBUS_ASSIGN_OR_RETURN(weight_, loader.vector(name, width, {0, width}));
  return absl::OkStatus();
}

void RmsNorm::forward(const OpContext& ctx, const float* x, const int32_t* rows, int32_t m,
                      Activations* out) const {
  NormQuantParams params;
  params.x = x;
  params.rows = rows;
  params.weight = weight_;
  params.eps = eps_;
  params.m = m;
  params.out = out;
  norm_quant(ctx, params);
}

}  // namespace omnibus
