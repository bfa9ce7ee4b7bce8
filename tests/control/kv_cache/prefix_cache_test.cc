#include "omnibus/control/kv_cache/prefix_cache.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using Tokens = std::vector<TokenId>;

TEST(PrefixCache, FindsWhatWasInserted) {
  PrefixCache cache(4, 2);
  EXPECT_TRUE(cache.insert(sha256("a"), Tokens{1, 2}, 3));
  EXPECT_EQ(cache.find(sha256("a"), Tokens{1, 2}), 3);
  EXPECT_FALSE(cache.find(sha256("b"), Tokens{1, 2}));
  cache.erase(3);
  EXPECT_FALSE(cache.find(sha256("a"), Tokens{1, 2}));
  EXPECT_EQ(cache.size(), 0);
  EXPECT_TRUE(cache.check_integrity().ok());
}

// As if SHA-256 had collided: the key is there, the tokens are others.
TEST(PrefixCache, CollisionIsAMiss) {
  PrefixCache cache(4, 2);
  cache.insert(sha256("a"), Tokens{1, 2}, 0);
  EXPECT_FALSE(cache.find(sha256("a"), Tokens{1, 3}));
  EXPECT_FALSE(cache.find(sha256("a"), Tokens{1}));
  EXPECT_FALSE(cache.find(sha256("a"), Tokens{1, 2, 3}));
}

// Blocks with the same content stand behind the one that is found, and one takes its place.
TEST(PrefixCache, ACopyTakesThePlaceOfWhatIsErased) {
  PrefixCache cache(8, 2);
  const auto found = [&] { return cache.find(sha256("a"), Tokens{1, 2}); };
  EXPECT_TRUE(cache.insert(sha256("a"), Tokens{1, 2}, 0));
  for (BlockId copy : {1, 2, 3}) EXPECT_FALSE(cache.insert(sha256("a"), Tokens{1, 2}, copy));
  EXPECT_TRUE(cache.has_copies(0));
  EXPECT_TRUE(cache.is_copy(2));
  EXPECT_FALSE(cache.holds(2));
  EXPECT_EQ(cache.erase(2), std::nullopt) << "a copy goes without a trace";
  EXPECT_TRUE(cache.check_integrity().ok()) << cache.check_integrity();
  EXPECT_EQ(cache.erase(0), 3) << "the newest";
  EXPECT_EQ(found(), 3);
  EXPECT_TRUE(cache.check_integrity().ok()) << cache.check_integrity();
  EXPECT_EQ(cache.erase(3), 1);
  EXPECT_FALSE(cache.has_copies(1));
  EXPECT_EQ(cache.erase(1), std::nullopt);
  EXPECT_FALSE(found());
  EXPECT_EQ(cache.size(), 0);
  EXPECT_TRUE(cache.insert(sha256("a"), Tokens{1, 2}, 2));
  EXPECT_FALSE(cache.insert(sha256("a"), Tokens{1, 2}, 4));
  cache.clear();
  EXPECT_FALSE(found());
  EXPECT_FALSE(cache.is_copy(4));
  EXPECT_TRUE(cache.check_integrity().ok()) << cache.check_integrity();
}

TEST(PrefixCache, FirstWriterWins) {
  PrefixCache cache(4, 2);
  EXPECT_TRUE(cache.insert(sha256("a"), Tokens{1, 2}, 0));
  EXPECT_FALSE(cache.insert(sha256("a"), Tokens{1, 2}, 1));
  EXPECT_FALSE(cache.insert(sha256("a"), Tokens{7, 8}, 2));
  EXPECT_FALSE(cache.is_copy(2)) << "other tokens under one key are no copy";
  EXPECT_FALSE(cache.insert(sha256("b"), Tokens{7, 8}, 0)) << "a block has one key";
  EXPECT_EQ(cache.find(sha256("a"), Tokens{1, 2}), 0);
  cache.erase(2);  // was never in it
  EXPECT_EQ(cache.size(), 1);
  EXPECT_TRUE(cache.check_integrity().ok());
}

}  // namespace
}  // namespace omnibus
