#include <algorithm>

#include "omnibus/base/common/check.h"

#include "cpu_ops.h"
#include "unit_tree.h"

namespace omnibus::cpu {

kernels::ActStore act_store(const Activations& x) {
  return {
      x.f32, x.q, x.scale, x.group_sum, x.scaled_sum, x.k, static_cast<int32_t>(padded_k(x.k) / kQuantGroup)};
}

Gemm::Gemm(const OpContext& ctx, const LinearWeight& weight, const Activations& x) : params_{} {
  const bool int8 = ctx.mode == ActivationMode::kInt8 && weight.form <= WeightForm::kS8;
  kernel_ = int8 ? ctx.table->cpu->gemm_int8 : ctx.table->cpu->gemm_f32;
  OMNIBUS_CHECK(x.k == weight.k, "matmul: width of x and of the weight differ");
  OMNIBUS_CHECK(int8 ? x.q != nullptr : x.f32 != nullptr, "matmul: x lacks the form that the weight needs");
  params_.form = static_cast<kernels::Form>(weight.form);
  params_.ggml_type = weight.ggml_type;
  params_.panels = static_cast<const uint8_t*>(weight.packed.data);
  params_.n = weight.n;
  params_.k = weight.k;
  params_.x = act_store(x);
  const int32_t panels = (weight.n + kernels::kPanelRows - 1) / kernels::kPanelRows;
  params_.row_bytes =
      static_cast<int64_t>(weight.packed.bytes) / (int64_t{panels} * kernels::kPanelRows);  // kBlocks only
  params_.units = weight.units.units();
  for (int32_t u = 0; u < params_.units; ++u) {
    unit_end_[static_cast<size_t>(u)] = weight.units.k_begin[static_cast<size_t>(u) + 1] / kQuantGroup;
  }
  unit_merges(params_.units, unit_merges_);
  params_.unit_end = unit_end_.data();
  params_.unit_merges = unit_merges_.data();
  params_.bias = weight.bias;
}

void Gemm::run(int64_t unit_begin, int64_t unit_end, int32_t m_begin, int32_t m_end,
               const Target& target) const {
  if (unit_begin >= unit_end || m_begin >= m_end) return;
  kernels::GemmParams p = params_;
  p.m_begin = m_begin;
  p.m_end = m_end;
  p.out = target.out;
  p.out_stride = target.stride;
  p.column_begin = target.column_begin;
  p.accumulate = target.accumulate;
  constexpr int32_t kPanelsPerUnit = kUnitRows / kernels::kPanelRows;
  const int32_t panels = (p.n + kernels::kPanelRows - 1) / kernels::kPanelRows;
  kernel_(p, static_cast<int32_t>(unit_begin) * kPanelsPerUnit,
          std::min(static_cast<int32_t>(unit_end) * kPanelsPerUnit, panels));
}

}  // namespace omnibus::cpu
