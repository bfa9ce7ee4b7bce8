#include "omnibus/compute/ops/gate_up_act.h"

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

void gate_up_act(const OpContext& ctx, const GateUpParams& params) {
  OMNIBUS_CHECK(params.gate->n == params.up->n && params.out->k == params.gate->n,
                "gate_up_act: widths of gate, up and out differ");
  OMNIBUS_CHECK(params.x->m <= params.out->max_m, "gate_up_act: more rows than `out` holds");
  params.out->m = params.x->m;
  ctx.table->gate_up_act(ctx, params);
}

}  // namespace omnibus
