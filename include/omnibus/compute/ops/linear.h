// linear, linear_residual: y = x W^T (+ bias) (+ residual). Every output element is one fixed sum: a chain of
// fma over groups in ascending k, or one chain per unit and the units in the fixed tree; never a function of
// m, threads or neighbours (docs/design.md, Numerics).
#pragma once

#include <cstdint>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

struct LinearParams {
  const LinearWeight* weight = nullptr;
  const Activations* x = nullptr;  // [m, k]
  float* out = nullptr;            // [m, n], row stride n
};
void linear(const OpContext& ctx, const LinearParams& params);

// residual[i, :] += x W^T + bias. Row-parallel: the all-reduce stands between (layers do that when tp > 1).
struct LinearResidualParams {
  const LinearWeight* weight = nullptr;
  const Activations* x = nullptr;
  float* residual = nullptr;  // [m, n], in place
};
void linear_residual(const OpContext& ctx, const LinearResidualParams& params);

}  // namespace omnibus
