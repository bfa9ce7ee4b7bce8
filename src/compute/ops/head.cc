#include "omnibus/compute/ops/head.h"

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

void head(const OpContext& ctx, const HeadParams& params) {
  OMNIBUS_CHECK(params.weight != nullptr && params.x != nullptr && params.x->k == params.weight->k,
                "head: width of x and of the weight differ");
  const auto rows = static_cast<size_t>(params.x->m);
  OMNIBUS_CHECK(params.requests.size() == rows && params.outputs.size() == rows,
                "head: one request and one output per row");
  ctx.table->head(ctx, params);
}

}  // namespace omnibus
