#include <algorithm>
#include <cstring>

#include "cpu_ops.h"

namespace omnibus::cpu {
namespace {

// Norm and rotation of heads [begin, end) of one row; `heads` points at head 0 of the kind.
void rotate(const kernels::CpuTable& table, const QkvParams& p, int32_t row, float* heads, int32_t count,
            const float* norm) {
  const RopeTable& rope = p.rope;
  const int64_t at = int64_t{p.positions[row]} * (rope.dims / 2);
  for (int32_t h = 0; h < count; ++h) {
    float* head = heads + int64_t{h} * p.kv.head_dim;
    if (norm != nullptr) table.head_norm(head, norm, p.norm_eps, p.kv.head_dim);
    if (rope.dims > 0) table.rope(head, {rope.cos + at, rope.sin + at, rope.dims, rope.neox});
  }
}

// True when a later row of the batch writes into the same block; rows of a sequence ascend, so the next
// written row tells. Rows that are not written leave their slots alone.
bool block_goes_on(const QkvParams& p, int32_t row) {
  constexpr int64_t kBlock = kernels::kKvBlock;
  for (int32_t next = row + 1; next < p.x->m; ++next) {
    if (p.slots[next] >= 0) return p.slots[next] / kBlock == p.slots[row] / kBlock;
  }
  return false;
}

// K and V of one row into the cache. The slots behind the last row of a block are zeroed, so that a block
// that is used again never shows an old NaN behind a mask (0 * NaN is NaN).
void write_cache(const kernels::CpuTable& table, const QkvParams& p, int32_t row, const float* k,
                 const float* v) {
  constexpr int64_t kBlock = kernels::kKvBlock;
  const int64_t slot = p.slots[row];
  if (slot < 0) return;
  table.kv_write({k, v, static_cast<uint8_t*>(p.kv.data) + slot / kBlock * p.kv.block_bytes,
                  static_cast<int32_t>(slot % kBlock), p.kv.kv_heads, p.kv.head_dim,
                  p.kv.dtype == DType::kF32, !block_goes_on(p, row)});
}

void finish_row(const kernels::CpuTable& table, const QkvParams& p, int32_t row) {
  const int64_t q_width = int64_t{p.heads} * p.kv.head_dim;
  const int64_t kv_width = int64_t{p.kv.kv_heads} * p.kv.head_dim;
  float* q = p.scratch + row * (q_width + 2 * kv_width);
  float* k = q + q_width;
  rotate(table, p, row, q, p.heads, p.q_norm);
  rotate(table, p, row, k, p.kv.kv_heads, p.k_norm);
  write_cache(table, p, row, k, k + kv_width);
  std::memcpy(p.q_out + row * q_width, q, static_cast<size_t>(q_width) * sizeof(float));
}

}  // namespace

void qkv_rope_kv_write(const OpContext& ctx, const QkvParams& params) {
  const Gemm gemms[3] = {
      {ctx, *params.q, *params.x}, {ctx, *params.k, *params.x}, {ctx, *params.v, *params.x}};
  const int32_t m = params.x->m;
  const int64_t width = int64_t{params.q->n} + params.k->n + params.v->n;
  const int64_t all_units = int64_t{gemms[0].units()} + gemms[1].units() + gemms[2].units();
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    // The three projections are dealt as one range of row units.
    const ThreadRange units = thread_range(all_units, thread, threads);
    int64_t first_unit = 0;
    int64_t column = 0;
    for (const Gemm& gemm : gemms) {
      const int64_t begin = std::max<int64_t>(units.begin - first_unit, 0);
      const int64_t end = std::min<int64_t>(units.end - first_unit, gemm.units());
      gemm.run(begin, end, 0, m, {params.scratch + column, width, 0, false});
      first_unit += gemm.units();
      column += gemm.columns();
    }
    ctx.pool->barrier(thread);
    const ThreadRange rows = thread_range(m, thread, threads);
    for (auto row = static_cast<int32_t>(rows.begin); row < rows.end; ++row) {
      finish_row(*ctx.table->cpu, params, row);
    }
  });
}

}  // namespace omnibus::cpu
