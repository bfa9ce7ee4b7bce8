#include "omnibus/compute/loader/weight_loader.h"

#include <gtest/gtest.h>

#include "omnibus/compute/ops/device_ops.h"
#include "omnibus/compute/ops/embed.h"

#include "compute/support/random_model.h"

namespace omnibus {
namespace {

class WeightLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = *ComputePool::create(1, false);
    ctx_ = *make_op_context({}, CpuIsa::kAuto, ActivationMode::kF32, pool_.get(), nullptr);
    allocator_ = *make_arena_allocator("weights", 4 << 20);
  }
  static std::shared_ptr<const GgufFile> file_of(GgmlType type) {
    RandomModel model;
    model.sizes = small_llama();
    model.sizes.matrix_type = type;
    return make_random_model(model);
  }
  // The packed rows, decoded.
  std::vector<float> decode(const LinearWeight& weight) {
    std::vector<int32_t> ids(static_cast<size_t>(weight.n));
    for (int32_t i = 0; i < weight.n; ++i) ids[static_cast<size_t>(i)] = i;
    std::vector<float> out(static_cast<size_t>(weight.n) * static_cast<size_t>(weight.k));
    EmbedParams params;
    params.table = &weight;
    params.ids = ids.data();
    params.m = weight.n;
    params.out = out.data();
    embed(ctx_, params);
    return out;
  }

  std::unique_ptr<ComputePool> pool_;
  OpContext ctx_;
  std::unique_ptr<Allocator> allocator_;
};

TEST_F(WeightLoaderTest, AnyPartOfAMatrixPacksToTheValuesOfTheFile) {
  for (GgmlType type : {GgmlType::kF32, GgmlType::kF16, GgmlType::kQ8_0, GgmlType::kQ4_0, GgmlType::kQ4_1}) {
    StateDict state(file_of(type));
    int64_t last_done = 0;
    WeightLoader loader(state, ctx_, *allocator_, [&](int64_t done, int64_t total) {
      EXPECT_GT(done, last_done);
      EXPECT_EQ(total, state.total_bytes());
      last_done = done;
    });
    const TensorView source = *state.matrix("blk.0.attn_q.weight", 96, 96);
    std::vector<float> expected(96 * 96);
    ASSERT_TRUE(dequantize_row(static_cast<uint32_t>(type), source.data, expected).ok());
    const Range parts[][2] = {
        {{0, 96}, {0, 96}}, {{17, 50}, {0, 96}}, {{0, 96}, {32, 96}}, {{0, 96}, {0, 64}}};
    for (const auto& [rows, columns] : parts) {
      LinearSpec spec;
      spec.name = "blk.0.attn_q";
      spec.n = spec.k = 96;
      spec.rows = rows;
      spec.columns = columns;
      const auto weight = loader.linear(spec);
      ASSERT_TRUE(weight.ok()) << weight.status();
      EXPECT_EQ(weight->n, rows.size());
      EXPECT_EQ(weight->k, columns.size());
      const auto got = decode(*weight);
      for (int64_t r = 0; r < rows.size(); ++r)
        for (int64_t c = 0; c < columns.size(); ++c)
          ASSERT_EQ(got[static_cast<size_t>(r * columns.size() + c)],
                    expected[static_cast<size_t>((rows.begin + r) * 96 + columns.begin + c)])
              << "type " << static_cast<int>(type) << " row " << r << " column " << c;
    }
    EXPECT_GT(last_done, 0);
  }
}

TEST_F(WeightLoaderTest, VectorsAndBiasesFollowTheirRange) {
  RandomModel model;
  model.sizes = small_qwen2();
  StateDict state(make_random_model(model));
  WeightLoader loader(state, ctx_, *allocator_, nullptr);
  const float* whole = *loader.vector("blk.1.attn_q.bias", 64, {0, 64});
  const float* part = *loader.vector("blk.1.attn_q.bias", 64, {16, 48});
  for (int i = 0; i < 32; ++i) EXPECT_EQ(part[i], whole[16 + i]);
  LinearSpec spec;
  spec.name = "blk.1.attn_q";
  spec.n = spec.k = 64;
  spec.rows = {16, 48};
  spec.columns = {0, 64};
  const auto weight = loader.linear(spec);
  ASSERT_TRUE(weight.ok()) << weight.status();
  ASSERT_NE(weight->bias, nullptr);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(weight->bias[i], whole[16 + i]);
  spec.name = "blk.1.attn_output";
  spec.rows = {0, 64};
  EXPECT_EQ(loader.linear(spec)->bias, nullptr);
  spec.rows = {5, 5};  // a rank without a share
  EXPECT_EQ(loader.linear(spec)->n, 0);
}

}  // namespace
}  // namespace omnibus
