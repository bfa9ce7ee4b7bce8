#include "omnibus/compute/models/model_registry.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/support/random_model.h"
#include "compute/support/teacher_forcing.h"

namespace omnibus {
namespace {

std::vector<DenseFile> small_models() { return {small_llama(), small_qwen2(), small_qwen3()}; }

TEST(ModelRegistryTest, EveryArchitectureHasASmallModelThatRuns) {
  std::set<std::string> built, small;
  for (const auto& entry : model_registry()) built.emplace(entry.architecture);
  for (const DenseFile& sizes : small_models()) {
    small.insert(sizes.architecture);
    RandomModel model;
    model.sizes = sizes;
    auto forcing = TeacherForcing::create(make_random_model(model), {});
    ASSERT_TRUE(forcing.ok()) << sizes.architecture << ": " << forcing.status();
    const std::vector<TokenId> ids{5, 6, 7, 8};
    int rows = 0;
    ASSERT_TRUE((*forcing)
                    ->run(ids, 0,
                          [&](int32_t, std::span<const float> logits) {
                            EXPECT_EQ(logits.size(), 263U);
                            ++rows;
                          })
                    .ok());
    EXPECT_EQ(rows, 4);
  }
  EXPECT_EQ(built, small) << "an architecture without a small model, or the other way round";
}

TEST(ModelRegistryTest, UnknownArchitectureIsNamed) {
  ModelContext context;
  context.config.architecture = "mamba";
  EXPECT_THAT(status_message(make_model(context).status()),
              testing::AllOf(testing::HasSubstr("'mamba'"), testing::HasSubstr("llama, qwen2, qwen3")));
}

}  // namespace
}  // namespace omnibus
