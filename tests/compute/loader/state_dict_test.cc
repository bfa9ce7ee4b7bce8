#include "omnibus/compute/loader/state_dict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/support/random_model.h"

namespace omnibus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

StateDict small_state() {
  RandomModel model;
  model.sizes = small_llama();
  return StateDict(make_random_model(model));
}

TEST(StateDictTest, ShapesAreChecked) {
  StateDict state = small_state();
  const auto view = state.matrix("blk.0.attn_k.weight", 48, 96);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->row_bytes(), 96 / 32 * 20);
  EXPECT_EQ(view->data.size(), 48U * 60U);
  EXPECT_TRUE(state.vector("output_norm.weight", 96).ok());
  const auto wrong = state.matrix("blk.0.attn_k.weight", 96, 48);
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status_message(wrong.status()),
              AllOf(HasSubstr("random_model.gguf"), HasSubstr("blk.0.attn_k.weight"), HasSubstr("[96, 48]"),
                    HasSubstr("[48, 96]")));
  const auto absent = state.matrix("blk.7.attn_k.weight", 1, 1);
  EXPECT_EQ(absent.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(status_message(absent.status()), HasSubstr("'blk.7.attn_k.weight' is missing"));
}

TEST(StateDictTest, EveryTensorMustBeClaimed) {
  StateDict state = small_state();
  EXPECT_THAT(status_message(state.check_all_claimed()), HasSubstr("has no place"));
  state.skip("blk.");
  state.skip("token_embd.");
  ASSERT_TRUE(state.vector("output_norm.weight", 96).ok());
  EXPECT_THAT(status_message(state.check_all_claimed()),
              AllOf(HasSubstr("rope_freqs.weight"), HasSubstr("1 such")));
  ASSERT_TRUE(state.vector("rope_freqs.weight", 8).ok());
  EXPECT_TRUE(state.check_all_claimed().ok());
  EXPECT_TRUE(state.has("token_embd.weight"));
  EXPECT_FALSE(state.has("output.weight"));
}

}  // namespace
}  // namespace omnibus
