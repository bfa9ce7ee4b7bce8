#include "cpu_ops.h"

namespace omnibus::cpu {

void head(const OpContext& ctx, const HeadParams& params) {
  cpu::linear(ctx, LinearParams{params.weight, params.x, params.logits});
  const auto vocabulary = static_cast<size_t>(params.weight->n);
  const auto select = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const std::span<float> logits(params.logits + i * vocabulary, vocabulary);
      const std::span<float> raw(params.raw_logits != nullptr ? params.raw_logits + i * vocabulary : nullptr,
                                 params.raw_logits != nullptr ? vocabulary : 0);
      select_candidates(logits, raw, params.requests[i], params.outputs[i]);
    }
  };
  const int32_t rows = params.x->m;
  if (rows <= 1) return select(0, rows);
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange range = thread_range(rows, thread, threads);
    select(range.begin, range.end);
  });
}

}  // namespace omnibus::cpu
