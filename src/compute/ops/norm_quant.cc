#include "omnibus/compute/ops/norm_quant.h"

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

void norm_quant(const OpContext& ctx, const NormQuantParams& params) {
  OMNIBUS_CHECK(params.out != nullptr && params.m <= params.out->max_m,
                "norm_quant: more rows than `out` holds");
  params.out->m = params.m;
  ctx.table->norm_quant(ctx, params);
}

}  // namespace omnibus
