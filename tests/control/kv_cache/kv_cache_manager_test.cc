#include "omnibus/control/kv_cache/kv_cache_manager.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

KVCacheConfig config_of(int32_t num_blocks, std::vector<int64_t> group_bytes) {
  KVCacheConfig config;
  config.num_blocks = num_blocks;
  for (int64_t bytes : group_bytes) {
    KVGroupSpec group;
    group.bytes_per_block = bytes;
    config.groups.push_back(group);
  }
  return config;
}

std::unique_ptr<KVCacheManager> make(const KVCacheConfig& config) {
  auto manager = KVCacheManager::create(config);
  EXPECT_TRUE(manager.ok()) << manager.status();
  return std::move(manager).value();
}

TEST(BlockPool, SharedBlockIsFreeOnlyAfterItsLastHolder) {
  BlockPool pool(2);
  const BlockId a = *pool.take();
  pool.add_ref(a);
  pool.release(a);
  EXPECT_EQ(pool.used_count(), 1);
  EXPECT_EQ(pool.ref_count(a), 1);
  pool.release(a);
  EXPECT_EQ(pool.free_count(), 2);
  EXPECT_TRUE(pool.check_integrity().ok());
}

TEST(BlockPool, EmptyPoolRefuses) {
  BlockPool pool(1);
  EXPECT_TRUE(pool.take().has_value());
  EXPECT_FALSE(pool.take().has_value());
}

TEST(KVCacheManager, AllocatesByTokensAndOnlyWhatIsMissing) {
  auto kv = make(config_of(4, {100}));
  auto added = kv->allocate_slots(1, {.n_new = 17});
  ASSERT_TRUE(added);
  EXPECT_EQ((*added)[0].size(), 2U);
  added = kv->allocate_slots(1, {.n_computed = 17, .n_new = 15});
  ASSERT_TRUE(added);
  EXPECT_TRUE((*added)[0].empty());
  added = kv->allocate_slots(1, {.n_computed = 32, .n_new = 1, .n_lookahead = 15, .n_external = 1});
  ASSERT_TRUE(added);
  EXPECT_EQ((*added)[0].size(), 2U);
  EXPECT_EQ(kv->usage(), 1.0);
}

TEST(KVCacheManager, FullPoolChangesNothing) {
  // Two groups of different sizes: the second pool is the one that runs out.
  KVCacheConfig config = config_of(4, {100, 200});
  config.groups[1].tokens_per_block = 8;
  auto kv = make(config);
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 16}));
  const int32_t used = kv->used_blocks();
  EXPECT_FALSE(kv->allocate_slots(2, {.n_new = 17}));
  EXPECT_FALSE(kv->holds(2));
  EXPECT_EQ(kv->used_blocks(), used);
  EXPECT_TRUE(kv->check_integrity().ok());
}

TEST(KVCacheManager, GroupsOfOneBlockSizeShareAPool) {
  auto shared = make(config_of(4, {100, 100}));
  EXPECT_EQ(shared->total_blocks(), 4);
  EXPECT_EQ(shared->capacity_tokens(), 32);
  auto apart = make(config_of(4, {100, 200}));
  EXPECT_EQ(apart->total_blocks(), 8);
  EXPECT_EQ(apart->capacity_tokens(), 64);
}

TEST(KVCacheManager, RefusesBadConfigsByName) {
  EXPECT_EQ(KVCacheManager::create({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(KVCacheManager::create(config_of(0, {1})).status().code(), StatusCode::kInvalidArgument);
  KVCacheConfig recurrent = config_of(1, {1});
  recurrent.groups[0].kind = KVGroupKind::kRecurrent;
  EXPECT_EQ(KVCacheManager::create(recurrent).status().code(), StatusCode::kUnimplemented);
}

// Conservation law under random allocate / grow / free, against a model that only counts.
TEST(KVCacheManagerProperty, RandomOperationsConserveBlocks) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
    std::vector<int64_t> sizes;
    for (int g = pick(1, 3); g > 0; --g) sizes.push_back(pick(1, 2) * 100);
    KVCacheConfig config = config_of(pick(1, 40), sizes);
    for (auto& group : config.groups) group.tokens_per_block = 1 << pick(0, 5);
    auto kv = make(config);
    std::map<RequestId, int> tokens;  // the model
    for (int step = 0; step < 200; ++step) {
      const RequestId id = static_cast<RequestId>(pick(1, 8));
      if (pick(0, 3) == 0) {
        kv->free(id);
        tokens.erase(id);
      } else {
        const auto it = tokens.find(id);
        const SlotDemand demand{.n_computed = it == tokens.end() ? 0 : it->second, .n_new = pick(1, 60)};
        std::map<int64_t, int64_t> needed;  // per pool, all requests
        auto count = [&](int64_t n) {
          for (const auto& g : config.groups)
            needed[g.bytes_per_block] += (n + g.tokens_per_block - 1) / g.tokens_per_block;
        };
        for (const auto& [other, n] : tokens)
          if (other != id) count(n);
        count(demand.tokens());
        bool fits = true;
        for (const auto& [pool, n] : needed) fits = fits && n <= config.num_blocks;
        ASSERT_EQ(kv->allocate_slots(id, demand).has_value(), fits);
        if (fits) tokens[id] = static_cast<int>(demand.tokens());
      }
      ASSERT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
      std::map<int64_t, std::set<BlockId>> held;  // no block in two tables
      int32_t n_held = 0;
      for (const auto& [other, n] : tokens) {
        for (size_t g = 0; g < config.groups.size(); ++g) {
          for (BlockId b : kv->blocks_of(other, g)) {
            ASSERT_TRUE(held[config.groups[g].bytes_per_block].insert(b).second) << "block " << b;
            ++n_held;
          }
        }
      }
      ASSERT_EQ(kv->used_blocks(), n_held);
    }
    for (RequestId id = 1; id <= 8; ++id) kv->free(id);
    ASSERT_EQ(kv->used_blocks(), 0);
  }
}

}  // namespace
}  // namespace omnibus
