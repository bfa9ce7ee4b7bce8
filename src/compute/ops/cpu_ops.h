// The CPU table's ops, and what they share.
#pragma once

#include <array>
#include <cstdint>

#include "omnibus/compute/ops/op_table.h"
#include "omnibus_kernels/cpu_table.h"

namespace omnibus::cpu {

void embed(const OpContext& ctx, const EmbedParams& params);
void norm_quant(const OpContext& ctx, const NormQuantParams& params);
void linear(const OpContext& ctx, const LinearParams& params);
void linear_residual(const OpContext& ctx, const LinearResidualParams& params);
void qkv_rope_kv_write(const OpContext& ctx, const QkvParams& params);
void attention(const OpContext& ctx, const AttentionParams& params);
void gate_up_act(const OpContext& ctx, const GateUpParams& params);
void head(const OpContext& ctx, const HeadParams& params);

kernels::ActStore act_store(const Activations& x);

// The static unit of work of a matmul is 32 output rows (two panels), so that each thread streams its own
// memory.
inline constexpr int32_t kUnitRows = 32;
constexpr int32_t row_units(int32_t n) { return (n + kUnitRows - 1) / kUnitRows; }

// One matmul, ready to run on ranges of row units. Holds the unit tree; neither copied nor moved.
class Gemm {
 public:
  Gemm(const OpContext& ctx, const LinearWeight& weight, const Activations& x);
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // Columns of row units [begin, end) for rows [m_begin, m_end) of x; m_begin a multiple of 16. `out` points
  // at (m_begin, column_begin).
  struct Target {
    float* out = nullptr;
    int64_t stride = 0;
    int32_t column_begin = 0;
    bool accumulate = false;
  };
  void run(int64_t unit_begin, int64_t unit_end, int32_t m_begin, int32_t m_end, const Target& target) const;
  int32_t units() const { return row_units(params_.n); }
  int32_t columns() const { return params_.n; }

 private:
  kernels::GemmParams params_;
  void (*kernel_)(const kernels::GemmParams&, int32_t, int32_t);
  std::array<int32_t, kernels::kMaxUnits> unit_end_;
  std::array<uint8_t, kernels::kMaxUnits> unit_merges_;
};

// True where a pass over `values` values is not worth waking the pool for.
constexpr bool too_small_to_share(int64_t values) { return values < 8192; }

}  // namespace omnibus::cpu
