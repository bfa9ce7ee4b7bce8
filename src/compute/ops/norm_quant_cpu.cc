#include "cpu_ops.h"

namespace omnibus::cpu {

void norm_quant(const OpContext& ctx, const NormQuantParams& params) {
  const kernels::ActStore out = act_store(*params.out);
  const auto rows = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<int32_t>(begin); i < end; ++i) {
      const int64_t row = params.rows != nullptr ? params.rows[i] : i;
      ctx.table->cpu->rms_norm(params.x + row * out.k, params.weight, params.eps, i, out);
    }
  };
  if (too_small_to_share(int64_t{params.m} * out.k)) return rows(0, params.m);
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange range = thread_range(params.m, thread, threads);
    rows(range.begin, range.end);
  });
}

}  // namespace omnibus::cpu
