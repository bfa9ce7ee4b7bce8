#include "omnibus/compute/loader/shard_view.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus {
namespace {

// A matrix of `type` with distinct bytes.
struct Matrix {
  GgufTensorInfo info;
  std::vector<uint8_t> bytes;
  TensorView view;

  Matrix(GgmlType type, int64_t rows, int64_t columns) {
    const GgmlTypeTraits* traits = ggml_type_traits(static_cast<uint32_t>(type));
    info.name = "blk.0.ffn_down.weight";
    info.type = type;
    info.dims = {columns, rows};
    bytes.resize(static_cast<size_t>(rows * columns / traits->block_elements * traits->block_bytes));
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
    view = {&info, bytes, rows, columns};
  }
};

TEST(ShardViewTest, RowShardsAreViewsThatCoverTheMatrix) {
  const Matrix m(GgmlType::kQ4_1, 21, 64);
  for (int32_t ranks = 1; ranks <= 6; ++ranks) {
    std::vector<uint8_t> joined;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const auto shard = shard_rows(m.view, ParallelContext::range(21, rank, ranks));
      ASSERT_TRUE(shard.ok());
      EXPECT_TRUE(shard->copy.empty()) << "rows need no copy";
      EXPECT_EQ(shard->k, 64);
      joined.insert(joined.end(), shard->rows.begin(), shard->rows.end());
    }
    EXPECT_EQ(joined, m.bytes);
  }
}

TEST(ShardViewTest, ColumnShardsJoinRowByRow) {
  for (GgmlType type : {GgmlType::kF32, GgmlType::kQ8_0, GgmlType::kQ4_1}) {
    const Matrix m(type, 5, 224);
    const UnitCuts cuts = UnitCuts::of_ffn(224);
    for (int32_t ranks = 1; ranks <= 9; ++ranks) {
      std::vector<std::vector<uint8_t>> rows(5);
      int32_t columns = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const Range units = ParallelContext::range(cuts.units(), rank, ranks);
        const auto shard = shard_columns(m.view, unit_columns(cuts, units, 224));
        ASSERT_TRUE(shard.ok()) << shard.status();
        EXPECT_EQ(shard->copy.empty(), ranks == 1 || shard->k == 0);
        columns += shard->k;
        const size_t row_bytes = shard->rows.size() / 5;
        for (size_t r = 0; r < 5; ++r)
          rows[r].insert(rows[r].end(), shard->rows.begin() + static_cast<std::ptrdiff_t>(r * row_bytes),
                         shard->rows.begin() + static_cast<std::ptrdiff_t>((r + 1) * row_bytes));
      }
      EXPECT_EQ(columns, 224);
      std::vector<uint8_t> joined;
      for (const auto& row : rows) joined.insert(joined.end(), row.begin(), row.end());
      EXPECT_EQ(joined, m.bytes);
    }
  }
}

TEST(ShardViewTest, CutsThroughABlockAreRefusedByName) {
  const Matrix m(GgmlType::kQ4_K, 3, 512);
  EXPECT_TRUE(shard_columns(m.view, {256, 512}).ok());
  const auto shard = shard_columns(m.view, {0, 288});
  EXPECT_EQ(shard.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status_message(shard.status()),
              testing::AllOf(testing::HasSubstr("blk.0.ffn_down.weight"), testing::HasSubstr("column 288"),
                             testing::HasSubstr("Q4_K")));
  EXPECT_EQ(shard_rows(m.view, {2, 4}).status().code(), StatusCode::kInternal);
}

TEST(ShardViewTest, SlicesOfCutsStartAtZero) {
  const UnitCuts cuts{{0, 32, 96, 128, 192}};
  EXPECT_EQ(unit_slice(cuts, {1, 3}).k_begin, (std::vector<int32_t>{0, 64, 96}));
  EXPECT_EQ(unit_columns(cuts, {1, 3}, 180), (Range{32, 128}));
  EXPECT_EQ(unit_columns(cuts, {3, 4}, 180), (Range{128, 180}))
      << "the last unit ends with k, not with its padding";
  EXPECT_EQ(unit_slice(cuts, {4, 4}).units(), 0);
}

}  // namespace
}  // namespace omnibus
