#include "omnibus/compute/ops/attention.h"

#include "omnibus/compute/ops/op_table.h"

#include "kv_checks.h"

namespace omnibus {

void attention(const OpContext& ctx, const AttentionParams& params) {
  check_kv(params.kv, params.heads);
  const AttentionMetadata& metadata = *params.metadata;
  OMNIBUS_CHECK(params.out->k == params.heads * params.kv.head_dim, "attention: width of `out`");
  OMNIBUS_CHECK(metadata.m <= params.out->max_m, "attention: more rows than `out` holds");
  for (int32_t i = 0; i < metadata.n_sequences; ++i) {
    const AttentionSequence& s = metadata.sequences[i];
    OMNIBUS_CHECK(s.n_query >= 0 && s.n_query <= s.context && s.first_row + s.n_query <= metadata.m,
                  "attention: a sequence's rows lie outside the batch or its context");
  }
  params.out->m = metadata.m;
  ctx.table->attention(ctx, params);
}

}  // namespace omnibus
