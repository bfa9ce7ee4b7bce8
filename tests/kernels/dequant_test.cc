#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus_kernels/pack.h"

#include "kernels/random_weights.h"

namespace omnibus {
namespace {

// Bit-exact against gguf-py (tests/oracles/dequant_goldens.py).
TEST(Dequant, MatchesGgufPyBitForBit) {
  std::ifstream file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/dequant.golden", std::ios::binary);
  ASSERT_TRUE(file.is_open());
  std::string header;
  ASSERT_TRUE(std::getline(file, header));
  std::set<uint32_t> seen;
  uint32_t head[4];
  while (file.read(reinterpret_cast<char*>(head), sizeof head)) {
    const auto [type, count, elements, bytes] = head;
    std::vector<uint8_t> blocks(size_t{count} * bytes);
    std::vector<float> expected(size_t{count} * elements);
    ASSERT_TRUE(
        file.read(reinterpret_cast<char*>(blocks.data()), static_cast<std::streamsize>(blocks.size())));
    ASSERT_TRUE(file.read(reinterpret_cast<char*>(expected.data()),
                          static_cast<std::streamsize>(expected.size() * sizeof(float))));
    EXPECT_EQ(kernels::block_layout(type).elements, static_cast<int32_t>(elements));
    EXPECT_EQ(kernels::block_layout(type).bytes, static_cast<int32_t>(bytes));
    std::vector<float> got(expected.size());
    ASSERT_TRUE(dequantize_row(type, blocks, got).ok());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0)
          << kernels::ggml_type_name(type) << " element " << i << ": " << got[i] << ", gguf-py "
          << expected[i];
    }
    seen.insert(type);
  }
  for (const uint32_t type : kAllTypes) EXPECT_TRUE(seen.contains(type)) << kernels::ggml_type_name(type);
}

TEST(Dequant, RefusesUnknownTypesAndWrongSizes) {
  std::vector<uint8_t> blocks(18);
  std::vector<float> out(32);
  EXPECT_TRUE(dequantize_row(2, blocks, out).ok());
  const Status unknown = dequantize_row(16, blocks, out);
  EXPECT_EQ(unknown.code(), StatusCode::kUnimplemented);
  EXPECT_NE(unknown.message().find("IQ2_XXS"), std::string::npos);
  out.resize(33);
  EXPECT_EQ(dequantize_row(2, blocks, out).code(), StatusCode::kInvalidArgument);
  out.resize(64);
  EXPECT_EQ(dequantize_row(2, blocks, out).code(), StatusCode::kInvalidArgument);
}

// Packing loses nothing: a row read back from panels has the bits of the dequantised file row.
TEST(Pack, UnpackedRowsEqualDequantisedRows) {
  Rng rng(test_seed());
  for (const uint32_t type : kAllTypes) {
    for (int32_t repeat = 0; repeat < 5; ++repeat) {
      const int32_t block = kernels::block_layout(type).elements;
      const int32_t n = pick(rng, 1, 50);
      const int32_t k = block == 1 ? pick(rng, 1, 100) : block * pick(rng, 1, 5);
      const auto rows = random_rows(rng, type, n, k);
      const auto expected = dequantised(type, rows, n, k);
      TestDevice device(CpuIsa::kGeneric, ActivationMode::kInt8, 3);
      const LinearWeight weight = device.pack(type, rows, n, k);
      EXPECT_EQ(static_cast<int64_t>(weight.packed.bytes), packed_bytes(device.ctx, type, n, k).value());
      const kernels::PackParams packed{static_cast<kernels::Form>(weight.form),  type, nullptr,
                                       static_cast<int64_t>(rows.size()) / n,    n,    k,
                                       static_cast<uint8_t*>(weight.packed.data)};
      std::vector<float> got(static_cast<size_t>(k));
      for (int32_t r = 0; r < n; ++r) {
        kernels::unpack_row(packed, r, got.data());
        ASSERT_EQ(
            std::memcmp(got.data(), expected.data() + static_cast<size_t>(r) * k, got.size() * sizeof(float)),
            0)
            << kernels::ggml_type_name(type) << " row " << r << " n=" << n << " k=" << k
            << " seed=" << test_seed();
      }
    }
  }
}

TEST(Pack, RefusesBadRequests) {
  TestDevice device(CpuIsa::kGeneric, ActivationMode::kInt8, 1);
  const std::vector<uint8_t> rows(18 * 2);
  const auto status = [&](const PackRequest& request) {
    return pack_linear(device.ctx, request, *device.arena).status();
  };
  EXPECT_TRUE(status({"w", 2, 2, 32, rows, {}}).ok());
  EXPECT_EQ(status({"w", 2, 2, 33, rows, {}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status({"w", 2, 3, 32, rows, {}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status({"w", 2, 0, 32, rows, {}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status({"w", 2, 2, 32, rows, {{0, 16, 32}}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status({"w", 2, 2, 32, rows, {{0, 64}}}).code(), StatusCode::kInvalidArgument);
  const Status unknown = status({"blk.0.ffn_up.weight", 23, 2, 256, rows, {}});
  EXPECT_EQ(unknown.code(), StatusCode::kUnimplemented);
  EXPECT_NE(unknown.message().find("blk.0.ffn_up.weight"), std::string::npos);
  EXPECT_NE(unknown.message().find("IQ4_XS"), std::string::npos);
}

TEST(UnitCuts, FollowTheShardUnits) {
  EXPECT_EQ(UnitCuts::single(33).k_begin, (std::vector<int32_t>{0, 64}));
  // 18 groups, 8 units: cut at floor(u * 18 / 8) groups.
  EXPECT_EQ(UnitCuts::of_ffn(576).k_begin, (std::vector<int32_t>{0, 64, 128, 192, 288, 352, 416, 480, 576}));
  EXPECT_EQ(UnitCuts::of_ffn(96).k_begin, (std::vector<int32_t>{0, 32, 96}));
  EXPECT_EQ(UnitCuts::of_kv_groups(576, 192).k_begin, (std::vector<int32_t>{0, 192, 384, 576}));
  // 3 heads of 80: neighbours join until the cut is on a group of 32.
  EXPECT_EQ(UnitCuts::of_kv_groups(240, 80).k_begin, (std::vector<int32_t>{0, 160, 256}));
}

}  // namespace
}  // namespace omnibus
