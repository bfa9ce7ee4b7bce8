#include "omnibus/control/kv_cache/block_key.h"

#include <numeric>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using Keys = std::vector<Digest256>;

Keys keys_of(const KeyRoot& root, const std::vector<TokenId>& tokens, const std::vector<KeySpan>& spans = {},
             int32_t per_key = 4) {
  Keys keys;
  extend_block_keys(root, tokens, per_key, spans, keys);
  return keys;
}

std::vector<TokenId> counting(size_t n) {
  std::vector<TokenId> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

TEST(BlockKey, OnlyFullStretchesHaveKeys) {
  for (size_t n = 0; n < 14; ++n) EXPECT_EQ(keys_of({}, counting(n)).size(), n / 4);
}

TEST(BlockKey, StretchByStretchIsTheSameAsAtOnce) {
  const auto tokens = counting(50);
  const std::vector<KeySpan> spans = {{3, 9, "picture", {2, 2}}};
  const Keys whole = keys_of({"m", "", "s"}, tokens, spans);
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 rng(seed);
    Keys keys;
    for (size_t n = 0; n < tokens.size();) {
      n = std::min(tokens.size(), n + rng() % 9);
      extend_block_keys({"m", "", "s"}, std::span(tokens).first(n), 4, spans, keys);
    }
    EXPECT_EQ(keys, whole) << "seed " << seed;
  }
}

// A key stands for everything before it: one other token changes its own key and all later ones.
TEST(BlockKey, CommitsToEveryTokenBefore) {
  const auto tokens = counting(16);
  const Keys keys = keys_of({}, tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto other = tokens;
    other[i] = 99;
    const Keys changed = keys_of({}, other);
    for (size_t k = 0; k < keys.size(); ++k) EXPECT_EQ(changed[k] == keys[k], k < i / 4) << i << " " << k;
  }
}

// S15: whoever differs in model, adapter or salt shares nothing; a part cannot pose as its neighbour.
TEST(BlockKey, RootsAreKeptApart) {
  const auto tokens = counting(8);
  const std::vector<KeyRoot> roots = {{"", "", ""},   {"a", "", ""},  {"", "a", ""},  {"", "", "a"},
                                      {"a", "a", ""}, {"aa", "", ""}, {"a", "", "a"}, {"", "a", "a"}};
  std::set<Digest256> seen;
  for (const KeyRoot& root : roots)
    for (const Digest256& key : keys_of(root, tokens)) EXPECT_TRUE(seen.insert(key).second);
}

// The same placeholder ids, but another picture, place, size or shape: other KV from there on.
TEST(BlockKey, MediaCountWhereTheyLie) {
  const auto tokens = counting(16);
  const std::vector<KeySpan> one = {{5, 6, "x", {2, 3}}};
  const Keys keys = keys_of({}, tokens, one);
  const Keys bare = keys_of({}, tokens);
  EXPECT_EQ(keys[0], bare[0]) << "before the picture";
  for (size_t k = 1; k < 4; ++k) EXPECT_NE(keys[k], bare[k]);
  for (const KeySpan& other :
       {KeySpan{5, 6, "y", {2, 3}}, KeySpan{4, 6, "x", {2, 3}}, KeySpan{5, 7, "x", {2, 3}},
        KeySpan{5, 6, "x", {3, 2}}, KeySpan{5, 6, "x", {6}}})
    EXPECT_NE(keys_of({}, tokens, {other})[1], keys[1]);
  EXPECT_NE(keys_of({}, tokens, {{5, 3, "x", {}}, {8, 3, "x", {}}})[1], keys[1]);
}

}  // namespace
}  // namespace omnibus
