// The merge loop against its definition, and its cost in counted steps.
#include "src/text/tokenizer/merge_symbols.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

constexpr uint64_t kSeed = 11;

// The definition: look at every pair, join the one of lowest rank (leftmost first), begin again.
std::vector<int32_t> merge_by_definition(const MergeTable& table, std::vector<int32_t> symbols) {
  while (true) {
    uint32_t best = MergeTable::kNoRank;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const uint32_t rank = table.rank(symbols[i], symbols[i + 1]);
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == MergeTable::kNoRank) return symbols;
    symbols[at] = table.merge(best).result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Tokens are only lengths here: a result is as long as its halves together, and often some token of that
// length that is there already, so that many merges lead to it. Trained vocabularies list a token's first
// merge before any merge that uses it; `shuffled` ones do not.
std::vector<Merge> random_merges(std::mt19937_64& rng, size_t letters, size_t count, bool shuffled) {
  constexpr size_t kLongest = 8;
  std::vector<size_t> lengths(letters, 1);
  std::vector<Merge> merges;
  std::set<std::pair<TokenId, TokenId>> used;
  for (int tries = 0; tries < 10000 && merges.size() < count; ++tries) {
    const size_t left = rng() % lengths.size(), right = rng() % lengths.size();
    const size_t length = lengths[left] + lengths[right];
    const std::pair<TokenId, TokenId> pair(left, right);
    if (length > kLongest || !used.insert(pair).second) continue;
    auto result = static_cast<size_t>(std::find(lengths.begin(), lengths.end(), length) - lengths.begin());
    if (result == lengths.size() || rng() % 2 == 0) {
      result = lengths.size();
      lengths.push_back(length);
    }
    merges.push_back({pair.first, pair.second, static_cast<TokenId>(result)});
  }
  if (shuffled) std::shuffle(merges.begin(), merges.end(), rng);
  return merges;
}

class MergeSymbols : public ::testing::TestWithParam<bool> {};

TEST_P(MergeSymbols, FollowTheDefinition) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    const size_t letters = 1 + rng() % 4;
    const MergeTable table(random_merges(rng, letters, 1 + rng() % 60, GetParam()));
    // Both sides of the length at which the algorithm changes.
    for (const size_t length : {rng() % 20, 250 + rng() % 12, 300 + rng() % 600}) {
      MergeWorkspace work;
      for (size_t i = 0; i < length; ++i) {
        const bool unknown = rng() % 50 == 0;
        work.symbols.push_back(unknown ? -1 - static_cast<int32_t>(i)
                                       : static_cast<int32_t>(rng() % letters));
      }
      const std::vector<int32_t> expected = merge_by_definition(table, work.symbols);
      merge_symbols(table, work);
      ASSERT_EQ(work.symbols, expected) << "seed " << kSeed << " round " << round << " length " << length;
    }
  }
}

// Twice the input costs at most 2.6 times the steps.
TEST_P(MergeSymbols, CostGrowsNoFasterThanNLogN) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 10; ++round) {
    const size_t letters = 1 + static_cast<size_t>(round) % 4;
    const MergeTable table(random_merges(rng, letters, 60, GetParam()));
    uint64_t steps[2];
    for (const size_t doubled : {0u, 1u}) {
      MergeWorkspace work;
      for (size_t i = 0; i < (size_t{1} << (14 + doubled)); ++i) {
        work.symbols.push_back(static_cast<int32_t>(rng() % letters));
      }
      merge_symbols(table, work);
      steps[doubled] = work.steps;
    }
    EXPECT_GE(steps[0], size_t{1} << 14);
    EXPECT_LE(static_cast<double>(steps[1]), 2.6 * static_cast<double>(steps[0])) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, MergeSymbols, ::testing::Bool(),
                         [](const auto& shuffled) { return shuffled.param ? "shuffled" : "trained"; });

// The pairs (4, 4) are found from right to left: 4 arises first in the middle, then before it. Still the
// leftmost of two that overlap is joined first.
TEST(MergeSymbolsOrder, LeftmostFirstThoughFoundLast) {
  const MergeTable table({{0, 1, 4}, {2, 3, 4}, {4, 4, 5}});
  MergeWorkspace work;
  std::vector<int32_t> expected;
  for (int i = 0; i < 100; ++i) {
    for (const int32_t symbol : {2, 3, 0, 1, 0, 1, -1}) work.symbols.push_back(symbol);
    for (const int32_t symbol : {5, 4, -1}) expected.push_back(symbol);
  }
  merge_symbols(table, work);
  EXPECT_EQ(work.symbols, expected);
}

TEST(MergeTable, OfTheSamePairTheLastCounts) {
  const MergeTable table({{0, 1, 2}, {0, 1, 3}, {kNoToken, kNoToken, kNoToken}});
  EXPECT_EQ(table.merge(table.rank(0, 1)).result, 3);
  EXPECT_EQ(table.rank(1, 0), MergeTable::kNoRank);
  EXPECT_EQ(table.rank(-1, -1), MergeTable::kNoRank);
}

}  // namespace
}  // namespace omnibus
