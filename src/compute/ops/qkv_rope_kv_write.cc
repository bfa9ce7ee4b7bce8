#include "omnibus/compute/ops/qkv_rope_kv_write.h"

#include "omnibus/compute/ops/op_table.h"

#include "kv_checks.h"

namespace omnibus {

void qkv_rope_kv_write(const OpContext& ctx, const QkvParams& params) {
  check_kv(params.kv, params.heads);
  OMNIBUS_CHECK(params.q->n == params.heads * params.kv.head_dim &&
                    params.k->n == params.kv.kv_heads * params.kv.head_dim && params.v->n == params.k->n,
                "qkv: rows of the projections differ from heads * head_dim");
  OMNIBUS_CHECK(params.rope.dims % 2 == 0 && params.rope.dims <= params.kv.head_dim,
                "qkv: rope dims must be even and at most head_dim");
  ctx.table->qkv_rope_kv_write(ctx, params);
}

}  // namespace omnibus
