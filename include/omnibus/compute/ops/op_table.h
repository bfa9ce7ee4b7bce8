// OpTable: one device's implementation of every op. Ops check their operands, then call through it.
#pragma once

#include "omnibus/compute/ops/attention.h"
#include "omnibus/compute/ops/embed.h"
#include "omnibus/compute/ops/gate_up_act.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus/compute/ops/linear.h"
#include "omnibus/compute/ops/norm_quant.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/compute/ops/qkv_rope_kv_write.h"

namespace omnibus {

namespace kernels {
struct CpuTable;
}

struct OpTable {
  const kernels::CpuTable* cpu = nullptr;  // null on other devices
  void (*embed)(const OpContext&, const EmbedParams&) = nullptr;
  void (*norm_quant)(const OpContext&, const NormQuantParams&) = nullptr;
  void (*linear)(const OpContext&, const LinearParams&) = nullptr;
  void (*linear_residual)(const OpContext&, const LinearResidualParams&) = nullptr;
  void (*qkv_rope_kv_write)(const OpContext&, const QkvParams&) = nullptr;
  void (*attention)(const OpContext&, const AttentionParams&) = nullptr;
  void (*gate_up_act)(const OpContext&, const GateUpParams&) = nullptr;
  void (*head)(const OpContext&, const HeadParams&) = nullptr;
};

}  // namespace omnibus
