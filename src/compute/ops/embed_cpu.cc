#include <algorithm>

#include "omnibus_kernels/pack.h"

#include "cpu_ops.h"

namespace omnibus::cpu {

void embed(const OpContext& ctx, const EmbedParams& params) {
  const LinearWeight& table = *params.table;
  kernels::PackParams packed{};
  packed.form = static_cast<kernels::Form>(table.form);
  packed.ggml_type = table.ggml_type;
  packed.n = table.n;
  packed.k = table.k;
  packed.panels = static_cast<uint8_t*>(table.packed.data);
  const int64_t rows_padded =
      int64_t{(table.n + kernels::kPanelRows - 1) / kernels::kPanelRows} * kernels::kPanelRows;
  packed.row_bytes = static_cast<int64_t>(table.packed.bytes) / rows_padded;
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* out = params.out + i * table.k;
      const int64_t id = int64_t{params.ids[i]} - params.first_id;
      if (id < 0 || id >= table.n) {
        std::fill_n(out, table.k, 0.0F);
      } else {
        kernels::unpack_row(packed, static_cast<int32_t>(id), out);
      }
    }
  };
  if (too_small_to_share(int64_t{params.m} * table.k)) return rows(0, params.m);
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange range = thread_range(params.m, thread, threads);
    rows(range.begin, range.end);
  });
}

}  // namespace omnibus::cpu
