#include "cpu_ops.h"

namespace omnibus::cpu {
namespace {

void run_linear(const OpContext& ctx, const LinearWeight& weight, const Activations& x, float* out,
                bool accumulate) {
  const Gemm gemm(ctx, weight, x);
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange units = thread_range(gemm.units(), thread, threads);
    gemm.run(units.begin, units.end, 0, x.m, {out, weight.n, 0, accumulate});
  });
}

}  // namespace

void linear(const OpContext& ctx, const LinearParams& params) {
  run_linear(ctx, *params.weight, *params.x, params.out, false);
}

void linear_residual(const OpContext& ctx, const LinearResidualParams& params) {
  run_linear(ctx, *params.weight, *params.x, params.residual, true);
}

}  // namespace omnibus::cpu
