#include "omnibus/compute/layers/rope_table.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

class RopeTableTest : public testing::Test {
 protected:
  RopeTable build(const RopeSpec& spec) {
    ctx_.pool = pool_.get();
    allocators_.push_back(*make_arena_allocator("tables", 1 << 20));
    auto table = build_rope_table(ctx_, spec, *allocators_.back());
    EXPECT_TRUE(table.ok()) << table.status();
    return *table;
  }
  std::unique_ptr<ComputePool> pool_ = *ComputePool::create(2, false);
  std::vector<std::unique_ptr<Allocator>> allocators_;
  OpContext ctx_;
};

TEST_F(RopeTableTest, AnglesAreThoseOfTheFormula) {
  RopeSpec spec;
  spec.dims = 48;
  spec.positions = 301;
  spec.freq_base = 5e5;
  spec.linear_factor = 2.5;
  const RopeTable table = build(spec);
  EXPECT_EQ(table.positions, 301);
  for (int p = 0; p < 301; p += 7)
    for (int i = 0; i < 24; ++i) {
      const double angle = p / 2.5 / std::pow(5e5, i / 24.0);
      EXPECT_NEAR(static_cast<double>(table.cos[p * 24 + i]), std::cos(angle), 1e-6);
      EXPECT_NEAR(static_cast<double>(table.sin[p * 24 + i]), std::sin(angle), 1e-6);
    }
}

// llama3 scaling as the model card's formula, against its divisors as a file carries them.
TEST_F(RopeTableTest, FrequencyFactorsAreTheLlama3Scaling) {
  constexpr double kBase = 5e5, kFactor = 8, kLow = 1, kHigh = 4, kContext = 8192;
  std::vector<double> scaled;
  std::vector<float> divisors;
  for (int i = 0; i < 32; ++i) {
    const double f = std::pow(kBase, -i / 32.0), wavelength = 2 * std::numbers::pi / f;
    double g = f;
    if (wavelength > kContext / kLow) {
      g = f / kFactor;
    } else if (wavelength >= kContext / kHigh) {
      const double t = (kContext / wavelength - kLow) / (kHigh - kLow);
      g = f * ((1 - t) / kFactor + t);
    }
    scaled.push_back(g);
    divisors.push_back(static_cast<float>(f / g));
  }
  RopeSpec spec;
  spec.dims = 64;
  spec.positions = 1000;
  spec.freq_base = kBase;
  spec.freq_factors = divisors;
  const RopeTable table = build(spec);
  for (int i = 0; i < 32; ++i)
    EXPECT_NEAR(static_cast<double>(table.sin[999 * 32 + i]), std::sin(999 * scaled[static_cast<size_t>(i)]),
                1e-4);
  spec.dims = 32;
  EXPECT_EQ(build_rope_table(ctx_, spec, *allocators_.back()).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace omnibus
