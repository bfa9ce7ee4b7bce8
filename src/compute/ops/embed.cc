#include "omnibus/compute/ops/embed.h"

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

void embed(const OpContext& ctx, const EmbedParams& params) {
  OMNIBUS_CHECK(params.table != nullptr, "embed: missing table");
  ctx.table->embed(ctx, params);
}

}  // namespace omnibus
