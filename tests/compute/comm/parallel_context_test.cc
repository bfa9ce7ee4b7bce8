#include "omnibus/compute/comm/parallel_context.h"

#include <functional>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

// Every node [begin, end) of the fixed tree over n leaves.
std::set<std::pair<int64_t, int64_t>> nodes_of_tree(int64_t n) {
  std::set<std::pair<int64_t, int64_t>> nodes;
  std::function<void(int64_t, int64_t)> visit = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    nodes.insert({begin, end});
    if (end - begin == 1) return;
    const int64_t middle = begin + (end - begin + 1) / 2;
    visit(begin, middle);
    visit(middle, end);
  };
  visit(0, n);
  return nodes;
}

TEST(ParallelContextTest, SharesPartitionTheUnitsIntoSubtrees) {
  for (int64_t units = 0; units <= 40; ++units) {
    const auto nodes = nodes_of_tree(units);
    for (int32_t ranks = 1; ranks <= 17; ++ranks) {
      int64_t covered = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const Range range = ParallelContext::range(units, rank, ranks);
        SCOPED_TRACE(testing::Message() << units << " units, rank " << rank << " of " << ranks);
        EXPECT_EQ(range.begin, covered) << "shares are contiguous and in rank order";
        covered = range.end;
        ASSERT_LE(range.begin, range.end);
        if (range.size() > 0) EXPECT_TRUE(nodes.contains({range.begin, range.end}));
      }
      EXPECT_EQ(covered, units);
    }
  }
}

// The sum that ranks form together, each its subtree first, has the shape of the one that a single rank
// forms.
std::string shape(int64_t begin, int64_t end) {
  if (end - begin == 0) return "";
  if (end - begin == 1) return std::to_string(begin);
  const int64_t middle = begin + (end - begin + 1) / 2;
  return "(" + shape(begin, middle) + "+" + shape(middle, end) + ")";
}
std::string shape_of_ranks(int64_t units, int32_t first, int32_t n, int32_t ranks) {
  if (n == 1) {
    const Range range = ParallelContext::range(units, first, ranks);
    return shape(range.begin, range.end);
  }
  const int32_t left = (n + 1) / 2;
  const std::string a = shape_of_ranks(units, first, left, ranks);
  const std::string b = shape_of_ranks(units, first + left, n - left, ranks);
  return b.empty() ? a : "(" + a + "+" + b + ")";
}

TEST(ParallelContextTest, TreeOfRanksContinuesTheTreeOfUnits) {
  for (int64_t units = 1; units <= 32; ++units)
    for (int32_t ranks = 1; ranks <= 9; ++ranks)
      EXPECT_EQ(shape_of_ranks(units, 0, ranks, ranks), shape(0, units)) << units << " over " << ranks;
}

TEST(ParallelContextTest, UnevenAndEmptyShares) {
  EXPECT_EQ(ParallelContext::range(3, 0, 2), (Range{0, 2}));  // 9 heads over 3 KV heads: six and three
  EXPECT_EQ(ParallelContext::range(3, 1, 2), (Range{2, 3}));
  EXPECT_EQ(ParallelContext::range(2, 1, 4).size(), 0);
  ParallelContext one;
  EXPECT_EQ(one.tp_range(7), (Range{0, 7}));
}

TEST(ParallelContextTest, StagesPartitionTheLayers) {
  for (int32_t layers = 0; layers < 50; ++layers)
    for (int32_t stages = 1; stages < 9; ++stages) {
      int64_t covered = 0;
      for (int32_t stage = 0; stage < stages; ++stage) {
        ParallelContext context;
        context.pp_rank = stage;
        context.pp_size = stages;
        const Range range = context.layer_range(layers);
        EXPECT_EQ(range.begin, covered);
        EXPECT_LE(range.size(), layers / stages + 1);
        covered = range.end;
      }
      EXPECT_EQ(covered, layers);
    }
}

}  // namespace
}  // namespace omnibus
