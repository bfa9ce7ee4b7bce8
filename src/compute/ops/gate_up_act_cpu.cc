#include <algorithm>

#include "cpu_ops.h"

namespace omnibus::cpu {
namespace {

constexpr int32_t kRowBlock = 64;
constexpr int64_t kBlockUnits = 8;  // 64 rows x 8 units x (gate + up) = 128 KiB: stays in L2 until it is used

struct GateUp {
  const kernels::CpuTable* table;
  const Gemm* gate;
  const Gemm* up;
  kernels::Gate activation;
  kernels::ActStore out;
};

// Units [begin, end) of rows [m_begin, m_end): both products into `buffer` ([row][gate | up]), then the
// activation. One thread owns gate and up columns of the same 32 outputs, so nothing waits in between.
void run_block(const GateUp& op, int64_t begin, int64_t end, int32_t m_begin, int32_t m_end, float* buffer) {
  const int64_t width = std::min<int64_t>(end * kUnitRows, op.out.k) - begin * kUnitRows;
  const auto first = static_cast<int32_t>(begin) * kUnitRows;
  op.gate->run(begin, end, m_begin, m_end, {buffer, 2 * width, first, false});
  op.up->run(begin, end, m_begin, m_end, {buffer + width, 2 * width, first, false});
  for (int32_t row = m_begin; row < m_end; ++row) {
    const float* gate = buffer + (row - m_begin) * 2 * width;
    op.table->gated({gate, gate + width, op.activation, row, static_cast<int32_t>(begin),
                     static_cast<int32_t>(end), op.out});
  }
}

}  // namespace

void gate_up_act(const OpContext& ctx, const GateUpParams& params) {
  static_assert(kUnitRows == kQuantGroup);
  const Gemm gate(ctx, *params.gate, *params.x);
  const Gemm up(ctx, *params.up, *params.x);
  const GateUp op{
      ctx.table->cpu, &gate, &up,
      params.activation == GatedActivation::kSilu ? kernels::Gate::kSilu : kernels::Gate::kGeluTanh,
      act_store(*params.out)};
  const int32_t m = params.x->m;
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    const ThreadRange units = thread_range(gate.units(), thread, threads);
    // scratch holds [m, 2 n] floats; a thread's part of it is in proportion to its columns.
    float* own = params.scratch + int64_t{m} * 2 * units.begin * kUnitRows;
    const int64_t step =
        m <= kernels::kPanelRows ? std::max<int64_t>(units.end - units.begin, 1) : kBlockUnits;
    for (int32_t row = 0; row < m; row += kRowBlock) {
      const int32_t row_end = std::min(row + kRowBlock, m);
      for (int64_t u = units.begin; u < units.end; u += step) {
        run_block(op, u, std::min(u + step, units.end), row, row_end, own);
      }
    }
  });
}

}  // namespace omnibus::cpu
