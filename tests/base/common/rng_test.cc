#include "omnibus/base/common/rng.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffffULL),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, UniformIsInRangeAndMovesWithEveryArgument) {
  const double a = philox_uniform(1, 2, 0);
  EXPECT_GE(a, 0.0);
  EXPECT_LT(a, 1.0);
  EXPECT_NE(a, philox_uniform(2, 2, 0));
  EXPECT_NE(a, philox_uniform(1, 3, 0));
  EXPECT_NE(a, philox_uniform(1, 2, 1));
}

}  // namespace
}  // namespace omnibus
