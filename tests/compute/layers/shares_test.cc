#include <gtest/gtest.h>

#include "omnibus/compute/layers/attention_layer.h"
#include "omnibus/compute/layers/gated_mlp.h"
#include "omnibus/compute/layers/linear_layers.h"

namespace omnibus {
namespace {

ParallelContext rank_of(int32_t rank, int32_t ranks) {
  ParallelContext p;
  p.tp_rank = rank;
  p.tp_size = ranks;
  return p;
}

// Whole KV heads with their query heads, the hidden units of the FFN, and the vocabulary: each is dealt out
// once.
TEST(SharesTest, EveryHeadColumnAndIdBelongsToOneRank) {
  const int32_t geometries[][3] = {{9, 3, 64}, {14, 2, 64}, {32, 8, 64}, {6, 3, 16}, {4, 1, 32}, {5, 5, 24}};
  for (const auto& [heads, kv_heads, head_dim] : geometries) {
    AttentionLayerSpec spec;
    spec.heads = heads;
    spec.kv_heads = kv_heads;
    spec.head_dim = head_dim;
    for (int32_t ranks = 1; ranks <= 9; ++ranks) {
      int64_t next_kv = 0, next_ffn = 0, next_id = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const AttentionShare share = attention_share(spec, rank_of(rank, ranks));
        EXPECT_EQ(share.kv_heads.begin, next_kv)
            << heads << "/" << kv_heads << " rank " << rank << "/" << ranks;
        next_kv = share.kv_heads.end;
        EXPECT_EQ(share.heads.begin * kv_heads, share.kv_heads.begin * heads);
        EXPECT_EQ(share.heads.end * kv_heads, share.kv_heads.end * heads);
        const Range ffn = ffn_share(heads * 100 + 8, rank_of(rank, ranks));
        EXPECT_EQ(ffn.begin, next_ffn);
        next_ffn = ffn.end;
        const Range ids = vocab_share(heads * 31 + 5, rank_of(rank, ranks));
        EXPECT_EQ(ids.begin, next_id);
        next_id = ids.end;
      }
      EXPECT_EQ(next_kv, kv_heads);
      EXPECT_EQ(next_ffn, heads * 100 + 8);
      EXPECT_EQ(next_id, heads * 31 + 5);
    }
  }
}

}  // namespace
}  // namespace omnibus
