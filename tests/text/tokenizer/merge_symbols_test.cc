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

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<Merge> merges;
};

// Strings over a small alphabet. Trained vocabularies list a token's merge before any merge that uses it;
// `shuffled` ones do not, and have many ways to the same token.
Vocabulary random_vocabulary(std::mt19937_64& rng, int letters, size_t merges, bool shuffled) {
  Vocabulary vocabulary;
  for (int i = 0; i < letters; ++i) vocabulary.tokens.push_back(std::string(1, static_cast<char>('a' + i)));
  std::set<std::pair<TokenId, TokenId>> used;
  for (int tries = 0; tries < 10000 && vocabulary.merges.size() < merges; ++tries) {
    const auto left = static_cast<TokenId>(rng() % vocabulary.tokens.size());
    const auto right = static_cast<TokenId>(rng() % vocabulary.tokens.size());
    const std::string text =
        vocabulary.tokens[static_cast<size_t>(left)] + vocabulary.tokens[static_cast<size_t>(right)];
    if (text.size() > 8 || !used.insert({left, right}).second) continue;
    auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
    const auto result = static_cast<TokenId>(found - vocabulary.tokens.begin());
    if (found == vocabulary.tokens.end()) vocabulary.tokens.push_back(text);
    vocabulary.merges.push_back({left, right, result});
  }
  if (shuffled) std::shuffle(vocabulary.merges.begin(), vocabulary.merges.end(), rng);
  return vocabulary;
}

class MergeSymbols : public ::testing::TestWithParam<bool> {};

TEST_P(MergeSymbols, FollowTheDefinition) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    const int letters = 1 + static_cast<int>(rng() % 4);
    const Vocabulary vocabulary = random_vocabulary(rng, letters, 1 + rng() % 60, GetParam());
    const MergeTable table(vocabulary.merges);
    // Both sides of the length at which the algorithm changes.
    for (const size_t length : {rng() % 20, 250 + rng() % 12, 300 + rng() % 600}) {
      MergeWorkspace work;
      for (size_t i = 0; i < length; ++i) {
        const bool unknown = rng() % 50 == 0;
        work.symbols.push_back(unknown ? -1 - static_cast<int32_t>(i)
                                       : static_cast<int32_t>(rng() % static_cast<uint64_t>(letters)));
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
    const int letters = 1 + round % 4;
    const MergeTable table(random_vocabulary(rng, letters, 60, GetParam()).merges);
    uint64_t steps[2];
    for (const size_t doubled : {0u, 1u}) {
      MergeWorkspace work;
      for (size_t i = 0; i < (size_t{1} << (14 + doubled)); ++i) {
        work.symbols.push_back(static_cast<int32_t>(rng() % static_cast<uint64_t>(letters)));
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

TEST(MergeTable, OfTheSamePairTheLastCounts) {
  const MergeTable table({{0, 1, 2}, {0, 1, 3}, {kNoToken, kNoToken, kNoToken}});
  EXPECT_EQ(table.merge(table.rank(0, 1)).result, 3);
  EXPECT_EQ(table.rank(1, 0), MergeTable::kNoRank);
  EXPECT_EQ(table.rank(-1, -1), MergeTable::kNoRank);
}

}  // namespace
}  // namespace omnibus
