#include "omnibus/control/kv_cache/kv_cache_manager.h"

#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "omnibus/control/kv_cache/block_key.h"

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

TEST(KVCacheManager, AllocatesByTokensAndOnlyWhatIsMissing) {
  auto kv = make(config_of(4, {100}));
  auto added = kv->allocate_slots(1, {.n_new = 17});
  ASSERT_TRUE(added);
  EXPECT_EQ((*added)[0].size(), 2U);
  added = kv->allocate_slots(1, {.n_computed = 17, .n_new = 15});
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->empty());
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

// Tokens with their keys, as a request brings them.
struct Text {
  explicit Text(std::vector<TokenId> ids, std::string_view salt = "", int32_t per_key = 16)
      : tokens(std::move(ids)) {
    extend_block_keys({"model", "", salt}, tokens, per_key, {}, keys);
  }
  KeyedTokens keyed() const { return {tokens, keys}; }
  std::vector<TokenId> tokens;
  std::vector<Digest256> keys;
};

std::vector<TokenId> counting(int32_t n) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(KVCacheManager, PrefixIsSharedWithoutACopy) {
  auto kv = make(config_of(8, {100}));
  const Text text(counting(40));
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 40}));
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 39).n_tokens, 0) << "nothing is stored yet";
  kv->publish(1, text.keyed(), 20);
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 39).n_tokens, 16) << "full blocks only";
  kv->publish(1, text.keyed(), 40);
  const ComputedBlocks hit = kv->get_computed_blocks(text.keyed(), 39);
  ASSERT_EQ(hit.n_tokens, 32);
  const auto added = kv->allocate_slots(2, {.n_computed = 32, .n_new = 8}, hit);
  ASSERT_TRUE(added);
  EXPECT_EQ((*added)[0].size(), 3U) << "the shared ones are part of the new table";
  EXPECT_EQ(kv->blocks_of(2, 0)[0], kv->blocks_of(1, 0)[0]);
  EXPECT_EQ(kv->blocks_of(2, 0)[1], kv->blocks_of(1, 0)[1]);
  EXPECT_NE(kv->blocks_of(2, 0)[2], kv->blocks_of(1, 0)[2]);
  EXPECT_EQ(kv->used_blocks(), 4);
  kv->free(1);
  EXPECT_EQ(kv->used_blocks(), 3);
  kv->free(2);
  EXPECT_EQ(kv->used_blocks(), 0);
  EXPECT_EQ(kv->cached_blocks(), 2);
  EXPECT_EQ(kv->usage(), 0.0) << "cached blocks are free to take";
  EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
}

TEST(KVCacheManager, AHitNeedsOnlyTheMissingBlocks) {
  auto kv = make(config_of(4, {100}));
  const Text text(counting(48));
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 48}));
  kv->publish(1, text.keyed(), 48);
  EXPECT_FALSE(kv->allocate_slots(2, {.n_new = 48})) << "one block is left";
  const ComputedBlocks hit = kv->get_computed_blocks(text.keyed(), 47);
  EXPECT_TRUE(kv->allocate_slots(2, {.n_computed = 32, .n_new = 16}, hit));
  kv->free(1);
  kv->free(2);
  // Cached blocks that are to be shared are not there to be taken: 3 of 4 are, 2 more do not fit.
  const ComputedBlocks again = kv->get_computed_blocks(text.keyed(), 48);
  ASSERT_EQ(again.n_tokens, 48);
  EXPECT_FALSE(kv->allocate_slots(3, {.n_computed = 48, .n_new = 17}, again));
  EXPECT_FALSE(kv->holds(3));
  EXPECT_TRUE(kv->allocate_slots(3, {.n_computed = 48, .n_new = 16}, again));
  EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
}

TEST(KVCacheManager, TailsAreEvictedBeforeHeads) {
  auto kv = make(config_of(4, {100}));
  const Text text(counting(64));
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 64}));
  kv->publish(1, text.keyed(), 64);
  kv->free(1);
  for (int32_t left = 3; left >= 0; --left) {
    ASSERT_TRUE(kv->allocate_slots(static_cast<RequestId>(10 + left), {.n_new = 16}));
    EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 64).n_tokens, left * 16);
  }
}

// Two requests compute one text at the same time. The one whose blocks are found ends, and its memory is
// needed: what the other still holds is found.
TEST(KVCacheManager, WhatARequestHoldsIsNotLostWithItsCopy) {
  for (const bool first_leaves_before : {false, true}) {
    auto kv = make(config_of(8, {100}));
    const Text text(counting(48));
    ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 48}));
    ASSERT_TRUE(kv->allocate_slots(2, {.n_new = 48}));
    kv->publish(1, text.keyed(), 48);
    if (first_leaves_before) kv->free(1);
    kv->publish(2, text.keyed(), 32);
    kv->free(1);
    EXPECT_EQ(kv->used_blocks(), 3);
    EXPECT_EQ(kv->cached_blocks(), 1) << "what both have is there once, and the rest of the first";
    ASSERT_TRUE(kv->allocate_slots(3, {.n_new = 5 * 16})) << "all that nobody holds";
    EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 48).n_tokens, 32);
    kv->publish(2, text.keyed(), 48);
    kv->free(3);
    kv->free(2);
    EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 48).n_tokens, 48);
    EXPECT_EQ(kv->cached_blocks(), 3);
    EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
  }
}

TEST(KVCacheManager, ResetForgetsCopiesToo) {
  auto kv = make(config_of(8, {100}));
  const Text text(counting(32));
  for (RequestId id : {1, 2}) {
    ASSERT_TRUE(kv->allocate_slots(id, {.n_new = 32}));
    kv->publish(id, text.keyed(), 32);
  }
  kv->reset_prefix_cache();
  kv->free(1);
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 32).n_tokens, 0);
  kv->free(2);
  EXPECT_EQ(kv->cached_blocks(), 0);
  EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
}

TEST(KVCacheManager, SaltsShareNothing) {
  auto kv = make(config_of(8, {100}));
  const Text a(counting(32), "a");
  const Text b(counting(32), "b");
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 32}));
  kv->publish(1, a.keyed(), 32);
  EXPECT_EQ(kv->get_computed_blocks(a.keyed(), 32).n_tokens, 32);
  EXPECT_EQ(kv->get_computed_blocks(b.keyed(), 32).n_tokens, 0);
}

TEST(KVCacheManager, KeyWithOtherTokensIsAMiss) {
  auto kv = make(config_of(8, {100}));
  const Text text(counting(32));
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 32}));
  kv->publish(1, text.keyed(), 32);
  Text forged = text;
  forged.tokens[20] = 7;
  EXPECT_EQ(kv->get_computed_blocks(forged.keyed(), 32).n_tokens, 16);
}

TEST(KVCacheManager, ResetForgetsEverything) {
  auto kv = make(config_of(8, {100}));
  const Text text(counting(64));
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 64}));
  kv->publish(1, text.keyed(), 32);
  ASSERT_TRUE(kv->allocate_slots(2, {.n_new = 16}));
  kv->reset_prefix_cache();
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 64).n_tokens, 0);
  kv->publish(1, text.keyed(), 64);
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 64).n_tokens, 0) << "its KV is from before the reset";
  kv->free(1);
  EXPECT_EQ(kv->cached_blocks(), 0);
  EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();
  ASSERT_TRUE(kv->allocate_slots(3, {.n_new = 64}));
  kv->publish(3, text.keyed(), 64);
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 64).n_tokens, 64);
}

// Groups of different block sizes: a prefix counts as far as it is whole in each, and as a prefill may be
// cut.
TEST(KVCacheManager, PrefixIsValidInEveryGroup) {
  KVCacheConfig config = config_of(16, {100, 200});
  config.groups[1].tokens_per_block = 8;
  auto kv = make(config);
  ASSERT_EQ(kv->tokens_per_key(), 8);
  const Text text(counting(64), "", 8);
  ASSERT_TRUE(kv->allocate_slots(1, {.n_new = 64}));
  kv->publish(1, text.keyed(), 40);
  EXPECT_EQ(kv->get_computed_blocks(text.keyed(), 64).n_tokens, 32);
  kv->free(1);
  // Evicts from the pool of the second group alone: 16 blocks, of which 5 are cached.
  ASSERT_TRUE(kv->allocate_slots(2, {.n_new = 14 * 8}));
  const int32_t left = kv->get_computed_blocks(text.keyed(), 64).n_tokens;
  EXPECT_EQ(left, 16);
  EXPECT_TRUE(kv->check_integrity().ok()) << kv->check_integrity();

  config.groups[0].chunk_alignment = 48;
  auto aligned = make(config);
  ASSERT_TRUE(aligned->allocate_slots(1, {.n_new = 64}));
  aligned->publish(1, text.keyed(), 64);
  EXPECT_EQ(aligned->get_computed_blocks(text.keyed(), 64).n_tokens, 48);
}

// Under random operations on a few texts, with shared and copied blocks: what a request has published is
// found, and no refused demand can be met before the count of gains that the refusal named.
struct RandomTexts {
  explicit RandomTexts(uint32_t seed) : rng(seed) {
    std::vector<int64_t> sizes;
    for (int g = pick(1, 3); g > 0; --g) sizes.push_back(pick(1, 2) * 100);
    KVCacheConfig config = config_of(pick(8, 40), sizes);
    for (auto& group : config.groups) {
      group.tokens_per_block = 4 << pick(0, 2);
      group.chunk_alignment = pick(0, 2) == 0 ? 12 : 1;
    }
    kv = make(config);
    for (int first = 0; first < 3; ++first) {
      auto tokens = counting(96);
      for (int i = 24 * first; i < 96; ++i) tokens[static_cast<size_t>(i)] += 1000 * first;
      texts.emplace_back(std::move(tokens), "", kv->tokens_per_key());
    }
  }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); }
  // Tries to admit a request for `n` tokens of a text, as the scheduler does.
  bool admit(RequestId id, const Text& text, int32_t n) {
    const ComputedBlocks computed = kv->get_computed_blocks(text.keyed(), n - 1);
    return kv->allocate_slots(id, {.n_computed = computed.n_tokens, .n_new = n - computed.n_tokens}, computed)
        .has_value();
  }
  void step() {
    const auto id = static_cast<RequestId>(pick(1, 6));
    const auto it = running.find(id);
    if (it == running.end()) {
      const Running fresh{&texts[static_cast<size_t>(pick(0, 2))], pick(1, 96), 0, false};
      if (kv->fits_alone(fresh.tokens) && admit(id, *fresh.text, fresh.tokens)) running[id] = fresh;
    } else if (pick(0, 2) > 0) {
      Running& r = it->second;
      r.published = std::max(r.published, pick(0, r.tokens));
      kv->publish(id, r.text->keyed(), r.published);
    } else {
      kv->free(id);
      running.erase(it);
    }
    if (pick(0, 200) == 0) {
      kv->reset_prefix_cache();
      for (auto& [other, r] : running) r.is_forgotten = true;
    }
  }
  void check_found() {
    for (const auto& [id, r] : running)
      if (!r.is_forgotten) {
        const int32_t most = kv->get_computed_blocks(r.text->keyed(), r.published).n_tokens;
        ASSERT_GT(most + kUnit, r.published) << "request " << id;
      }
  }

  struct Running {
    const Text* text = nullptr;
    int32_t tokens = 0;
    int32_t published = 0;
    bool is_forgotten = false;  // by a reset
  };
  static constexpr int32_t kUnit = 48;  // of all groups, at most
  std::mt19937 rng;
  std::unique_ptr<KVCacheManager> kv;
  std::vector<Text> texts;
  std::map<RequestId, Running> running;
};

TEST(KVCacheManagerProperty, WhatIsPublishedAndHeldIsFound) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTexts t(seed);
    for (int step = 0; step < 300 && !HasFatalFailure(); ++step) {
      t.step();
      ASSERT_TRUE(t.kv->check_integrity().ok()) << t.kv->check_integrity();
      t.check_found();
    }
    for (RequestId id = 1; id <= 6; ++id) t.kv->free(id);
    ASSERT_EQ(t.kv->used_blocks(), 0);
  }
}

TEST(KVCacheManagerProperty, NoRefusedDemandIsMetBeforeItsTime) {
  int64_t looked = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTexts t(seed);
    constexpr RequestId kWaits = 100;
    int64_t retry_at = -1;
    const Text* text = nullptr;
    int32_t n = 0;
    for (int step = 0; step < 300; ++step) {
      t.step();
      if (retry_at < 0 || t.kv->gains() >= retry_at) {
        text = &t.texts[static_cast<size_t>(t.pick(0, 2))];
        n = t.pick(48, 96);
        if (!t.kv->fits_alone(n)) continue;
        retry_at = -1;
        if (!t.admit(kWaits, *text, n)) retry_at = t.kv->retry_at();
        t.kv->free(kWaits);
        continue;
      }
      ++looked;
      ASSERT_FALSE(t.admit(kWaits, *text, n)) << "step " << step;
    }
  }
  EXPECT_GT(looked, 1000);
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
