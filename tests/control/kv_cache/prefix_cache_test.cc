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

TEST(PrefixCache, FirstWriterWins) {
  PrefixCache cache(4, 2);
  EXPECT_TRUE(cache.insert(sha256("a"), Tokens{1, 2}, 0));
  EXPECT_FALSE(cache.insert(sha256("a"), Tokens{1, 2}, 1));
  EXPECT_FALSE(cache.insert(sha256("a"), Tokens{7, 8}, 2));
  EXPECT_FALSE(cache.insert(sha256("b"), Tokens{7, 8}, 0)) << "a block has one key";
  EXPECT_EQ(cache.find(sha256("a"), Tokens{1, 2}), 0);
  cache.erase(1);  // was never in it
  EXPECT_EQ(cache.size(), 1);
  EXPECT_TRUE(cache.check_integrity().ok());
}

}  // namespace
}  // namespace omnibus
