// make_op_context: resolves the device's kernel table once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// kCpu: picks the best table of kernels the CPU has, or `isa`; FAILED_PRECONDITION names what is missing.
// kMeta: counts. kCuda: UNIMPLEMENTED until its table exists. `pool` and `trace` outlive the context.
StatusOr<OpContext> make_op_context(Device device, CpuIsa isa, ActivationMode mode, ComputePool* pool,
                                    MetaTrace* trace);
const char* to_string(CpuIsa isa);
StatusOr<CpuIsa> parse_cpu_isa(std::string_view name);  // "auto" | "generic" | "avx2" | "avx512"
// The ISAs this machine can run, lowest first (for tests).
std::span<const CpuIsa> supported_isas();
// The table in use, e.g. "avx512 (vnni, bf16)".
std::string describe(const OpContext& ctx);

}  // namespace omnibus
