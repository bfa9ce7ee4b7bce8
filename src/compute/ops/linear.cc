#include "omnibus/compute/ops/linear.h"

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

void linear(const OpContext& ctx, const LinearParams& params) {
  OMNIBUS_CHECK(params.weight != nullptr && params.x != nullptr, "linear: missing operand");
  OMNIBUS_CHECK(params.x->k == params.weight->k, "linear: width of x and of the weight differ");
  ctx.table->linear(ctx, params);
}

void linear_residual(const OpContext& ctx, const LinearResidualParams& params) {
  OMNIBUS_CHECK(params.weight != nullptr && params.x != nullptr, "linear_residual: missing operand");
  OMNIBUS_CHECK(params.x->k == params.weight->k, "linear_residual: width of x and of the weight differ");
  ctx.table->linear_residual(ctx, params);
}

}  // namespace omnibus
