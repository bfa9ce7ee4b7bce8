#include "omnibus/compute/ops/device_ops.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "cpu_ops.h"
#include "meta_ops.h"

namespace omnibus {
namespace {

struct IsaName {
  CpuIsa isa;
  const char* name;
};
constexpr IsaName kIsaNames[] = {{CpuIsa::kAuto, "auto"},
                                 {CpuIsa::kGeneric, "generic"},
                                 {CpuIsa::kAvx2, "avx2"},
                                 {CpuIsa::kAvx512, "avx512"}};

kernels::Isa kernel_isa(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx2:
      return kernels::Isa::kAvx2;
    case CpuIsa::kAvx512:
      return kernels::Isa::kAvx512;
    default:
      return kernels::Isa::kGeneric;
  }
}

OpTable make_cpu_table(const kernels::CpuTable* kernels) {
  return {kernels,        cpu::embed,           cpu::norm_quant,
          cpu::linear,    cpu::linear_residual, cpu::qkv_rope_kv_write,
          cpu::attention, cpu::gate_up_act,     cpu::head};
}

// Ops are the same code on every instruction set; only the kernels below differ.
const OpTable& cpu_op_table(CpuIsa isa) {
  static const OpTable generic = make_cpu_table(kernels::cpu_table(kernels::Isa::kGeneric));
  static const OpTable avx2 = make_cpu_table(kernels::cpu_table(kernels::Isa::kAvx2));
  static const OpTable avx512 = make_cpu_table(kernels::cpu_table(kernels::Isa::kAvx512));
  if (isa == CpuIsa::kAvx512) return avx512;
  return isa == CpuIsa::kAvx2 ? avx2 : generic;
}

}  // namespace

std::span<const CpuIsa> supported_isas() {
  static const std::vector<CpuIsa> isas = [] {
    std::vector<CpuIsa> found;
    for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      if (kernels::cpu_table(kernel_isa(isa)) != nullptr) found.push_back(isa);
    }
    return found;
  }();
  return isas;
}

const char* to_string(CpuIsa isa) {
  for (const IsaName& n : kIsaNames) {
    if (n.isa == isa) return n.name;
  }
  return "?";
}

StatusOr<CpuIsa> parse_cpu_isa(std::string_view name) {
  for (const IsaName& n : kIsaNames) {
    if (name == n.name) return n.isa;
  }
  return absl::InvalidArgumentError(
      fmt::format("cpu isa '{}': expected auto, generic, avx2 or avx512", name));
}

StatusOr<OpContext> make_op_context(Device device, CpuIsa isa, ActivationMode mode, ComputePool* pool,
                                    MetaTrace* trace) {
  OpContext ctx;
  ctx.device = device;
  ctx.mode = mode;
  switch (device.kind) {
    case DeviceKind::kMeta:
      if (trace == nullptr) return absl::InvalidArgumentError("the meta device needs a trace to count into");
      ctx.table = &meta_table();
      ctx.trace = trace;
      return ctx;
    case DeviceKind::kCuda:
      return absl::UnimplementedError("device cuda: no kernels in this build");
    case DeviceKind::kCpu:
      break;
  }
  if (pool == nullptr) return absl::InvalidArgumentError("device cpu needs a compute pool");
  if (isa == CpuIsa::kAuto) isa = supported_isas().back();
  if (const char* missing = kernels::missing_feature(kernel_isa(isa)); *missing != 0) {
    return absl::FailedPreconditionError(
        fmt::format("cpu isa '{}': this machine lacks {}", to_string(isa), missing));
  }
  ctx.table = &cpu_op_table(isa);
  ctx.pool = pool;
  return ctx;
}

std::string describe(const OpContext& ctx) {
  return ctx.table->cpu != nullptr ? ctx.table->cpu->name : "meta";
}

}  // namespace omnibus
