#include "omnibus/control/kv_cache/block_pool.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(BlockPool, SharedBlockIsFreeOnlyAfterItsLastHolder) {
  BlockPool pool(2);
  const BlockId a = pool.take()->id;
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

TEST(BlockPool, FindableBlockStaysCachedAndComesBack) {
  BlockPool pool(2);
  const BlockId a = pool.take()->id;
  pool.set_findable(a);
  pool.release(a);
  EXPECT_EQ(pool.cached_count(), 1);
  EXPECT_EQ(pool.used_count(), 0);
  pool.add_ref(a);
  EXPECT_EQ(pool.cached_count(), 0);
  EXPECT_EQ(pool.ref_count(a), 1);
  pool.release(a);
  EXPECT_FALSE(pool.take()->was_cached) << "the free one first";
  const auto evicted = pool.take();
  EXPECT_EQ(evicted->id, a);
  EXPECT_TRUE(evicted->was_cached);
  EXPECT_FALSE(pool.is_findable(a));
  EXPECT_TRUE(pool.check_integrity().ok());
}

// Against a model that is a queue and a few maps: same answers, least recently used first.
TEST(BlockPoolProperty, AgreesWithANaiveModel) {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const auto n = static_cast<int32_t>(1 + rng() % 12);
    BlockPool pool(n);
    std::map<BlockId, int> refs;  // used
    std::map<BlockId, bool> findable;
    std::deque<BlockId> cached;  // oldest first
    const auto some_used = [&] {
      auto it = refs.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(rng() % refs.size()));
      return it->first;
    };
    for (int step = 0; step < 300; ++step) {
      const int32_t free = n - static_cast<int32_t>(refs.size() + cached.size());
      switch (rng() % 5) {
        case 0: {
          const auto taken = pool.take();
          ASSERT_EQ(taken.has_value(), free > 0 || !cached.empty());
          if (!taken) break;
          ASSERT_EQ(taken->was_cached, free == 0);
          if (free == 0) {
            ASSERT_EQ(taken->id, cached.front());
            cached.pop_front();
            ++evictions;
          }
          ASSERT_EQ(refs.count(taken->id), 0U);
          refs[taken->id] = 1;
          findable[taken->id] = false;
          break;
        }
        case 1:
          if (refs.empty()) break;
          findable[some_used()] = true;
          for (const auto& [id, yes] : findable)
            if (yes && refs.count(id) != 0) pool.set_findable(id);
          break;
        case 2: {
          if (refs.empty()) break;
          const BlockId id = some_used();
          pool.release(id);
          if (--refs[id] > 0) break;
          refs.erase(id);
          if (findable[id]) cached.push_back(id);
          break;
        }
        case 3: {
          if (cached.empty() || rng() % 2 == 0) {
            if (refs.empty()) break;
            const BlockId id = some_used();
            pool.add_ref(id);
            ++refs[id];
            break;
          }
          const BlockId id = cached[rng() % cached.size()];
          pool.add_ref(id);
          std::erase(cached, id);
          refs[id] = 1;
          break;
        }
        default: {
          const auto id = static_cast<BlockId>(rng() % static_cast<uint32_t>(n));
          if (rng() % 4 != 0) break;
          pool.forget(id);
          findable[id] = false;
          std::erase(cached, id);
        }
      }
      ASSERT_TRUE(pool.check_integrity().ok()) << pool.check_integrity();
      ASSERT_EQ(pool.used_count(), static_cast<int32_t>(refs.size()));
      ASSERT_EQ(pool.cached_count(), static_cast<int32_t>(cached.size()));
      ASSERT_EQ(pool.used_count() + pool.free_count() + pool.cached_count(), n);
      for (const auto& [id, count] : refs) ASSERT_EQ(pool.ref_count(id), count);
    }
  }
  EXPECT_GT(evictions, 1000);
}

}  // namespace
}  // namespace omnibus
