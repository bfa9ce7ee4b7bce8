#include "omnibus/compute/core/tensor.h"

#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(DType, EveryHalfSurvivesARoundTrip) {
  for (uint32_t i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = f16_to_f32(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      continue;
    }
    ASSERT_EQ(f32_to_f16(value), bits) << i;
    const float b = bf16_to_f32(bits);
    if (!std::isnan(b)) {
      ASSERT_EQ(f32_to_bf16(b), bits) << i;
    }
  }
}

#if defined(__FLT16_MANT_DIG__)
TEST(DType, HalfMatchesTheCompilersConversion) {
  std::mt19937 rng(7);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(f32_to_f16(value), expected) << value;
  }
}
#endif

TEST(DType, RoundsHalfwayToEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-11F), 0x3C00);
  EXPECT_EQ(f32_to_f16(1.0F + 3 * 0x1p-11F), 0x3C02);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0);
  EXPECT_EQ(f32_to_f16(0x1.8p-25F), 1);
}

TEST(Allocator, NamesArenaWhenFull) {
  auto allocator = make_arena_allocator("scratch", 1024).value();
  const Buffer a = allocator->allocate(100).value();
  const Buffer b = allocator->allocate(100).value();
  EXPECT_EQ(static_cast<char*>(b.data) - static_cast<char*>(a.data), 128);
  EXPECT_EQ(allocator->used_bytes(), 256U);
  const auto full = allocator->allocate(1000);
  EXPECT_EQ(full.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(full.status().message().find("'scratch'"), std::string::npos);
  EXPECT_EQ(allocator->allocate(SIZE_MAX - 3).status().code(), StatusCode::kResourceExhausted);
}

// docs/design.md, P3: the plan counts the bytes that the real thing takes.
TEST(Allocator, MetaCountsWhatArenaTakes) {
  auto arena = make_arena_allocator("a", 1 << 20).value();
  auto meta = make_meta_allocator("a");
  std::mt19937 rng(3);
  for (int i = 0; i < 50; ++i) {
    const size_t bytes = rng() % 5000;
    ASSERT_TRUE(arena->allocate(bytes).ok());
    const Buffer b = meta->allocate(bytes).value();
    EXPECT_EQ(b.data, nullptr);
    EXPECT_EQ(arena->used_bytes(), meta->used_bytes());
  }
}

TEST(Tensor, RowsAreViews) {
  auto allocator = make_arena_allocator("a", 4096).value();
  const Tensor t = Tensor::empty(*allocator, DType::kF32, {4, 6}).value();
  for (int i = 0; i < 24; ++i) t.data<float>()[i] = static_cast<float>(i);
  const Tensor view = t.rows(1, 3);
  EXPECT_EQ(view.shape_string(), "[2, 6] f32");
  EXPECT_EQ(view.data<float>()[0], 6.0F);
  EXPECT_EQ(view.bytes(), 48);
}

TEST(Tensor, RefusesOverflowingShape) {
  auto allocator = make_meta_allocator("m");
  const auto t = Tensor::empty(*allocator, DType::kF32, {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_EQ(t.status().code(), StatusCode::kInvalidArgument);
}

TEST(Tensor, MetaHasShapeAndNoData) {
  auto allocator = make_meta_allocator("m");
  const Tensor t = Tensor::empty(*allocator, DType::kBF16, {3, 5}).value();
  EXPECT_TRUE(t.is_meta());
  EXPECT_EQ(t.rows(1, 2).data<uint16_t>(), nullptr);
}

}  // namespace
}  // namespace omnibus
