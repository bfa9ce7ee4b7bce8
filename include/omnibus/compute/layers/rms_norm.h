// RmsNorm: a norm's weight, and the op that writes its result in the forms that the next matmuls want.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/loader/weight_loader.h"
#include "omnibus/compute/ops/norm_quant.h"

namespace omnibus {

class RmsNorm {
 public:
  // `name` with its suffix, e.g. "blk.0.attn_norm.weight".
  Status load(WeightLoader& loader, const std::string& name, int32_t width, float eps);
  // out row i = norm of x row (rows ? rows[i] : i); sets out->m.
  void forward(const OpContext& ctx, const float* x, const int32_t* rows, int32_t m, Activations* out) const;
  const float* weight() const { return weight_; }

 private:
  const float* weight_ = nullptr;
  float eps_ = 0;
};

}  // namespace omnibus
