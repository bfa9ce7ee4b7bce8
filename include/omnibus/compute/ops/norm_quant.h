// norm_quant: RMSNorm of the residual stream, written in the forms the next matmuls want.
// RMSNorm: Zhang and Sennrich, 2019. Sums of squares: partials per fixed block of 64, added in index order.
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// out[i, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * weight, with r = rows ? rows[i] : i.
struct NormQuantParams {
  const float* x = nullptr;       // [*, k]
  const int32_t* rows = nullptr;  // [m] gather, or null
  const float* weight = nullptr;  // [k]
  float eps = 1e-5F;
  int32_t m = 0;
  Activations* out = nullptr;  // sets out->m
};
void norm_quant(const OpContext& ctx, const NormQuantParams& params);

}  // namespace omnibus
