// norm_quant, gate_up_act and embed.
#include "kernels/reference/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "omnibus/compute/ops/embed.h"
#include "omnibus/compute/ops/gate_up_act.h"
#include "omnibus/compute/ops/linear.h"
#include "omnibus/compute/ops/norm_quant.h"

#include "kernels/random_weights.h"
#include "kernels/reference/linear.h"
#include "kernels/tolerance.h"

namespace omnibus {
namespace {

size_t tile_at(const Activations& a, int32_t row, int32_t group) {
  return static_cast<size_t>((row / 16 * (padded_k(a.k) / 32) + group) * 16 + row % 16);
}

std::vector<float> f32_rows(const Activations& a) {
  std::vector<float> out;
  for (int32_t i = 0; i < a.m; ++i)
    out.insert(out.end(), a.f32 + i * padded_k(a.k), a.f32 + i * padded_k(a.k) + a.k);
  return out;
}

// The int8 form of every row is the rounding of its f32 form.
void expect_quantised(const Activations& a, const std::string& what) {
  for (int32_t i = 0; i < a.m; ++i) {
    for (int32_t g = 0; g < padded_k(a.k) / 32; ++g) {
      const float* x = a.f32 + i * padded_k(a.k) + g * 32;
      const size_t at = tile_at(a, i, g);
      float amax = 0;
      int32_t sum = 0;
      for (int32_t c = 0; c < 32; ++c) {
        amax = std::max(amax, std::abs(x[c]));
        ASSERT_TRUE(g * 32 + c < a.k || x[c] == 0.0F) << what;
      }
      ASSERT_EQ(a.scale[at], amax / 127.0F) << what;
      for (int32_t c = 0; c < 32; ++c) {
        const int32_t q = a.q[at * 32 + static_cast<size_t>(c)];
        sum += q;
        ASSERT_LE(std::abs(q), 127) << what;
        ASSERT_LE(std::abs(static_cast<float>(q) * a.scale[at] - x[c]), 0.5001F * a.scale[at]) << what;
      }
      ASSERT_EQ(a.group_sum[at], sum) << what;
      ASSERT_EQ(a.scaled_sum[at], a.scale[at] * static_cast<float>(sum)) << what;
    }
  }
}

TEST(NormQuant, MatchesFloat64AndQuantisesItsOwnOutput) {
  Rng rng(test_seed());
  for (const CpuIsa isa : supported_isas()) {
    for (int32_t repeat = 0; repeat < 8; ++repeat) {
      const int32_t k = pick(rng, 1, 700);
      const int32_t m = pick(rng, 1, 40);
      TestDevice device(isa, ActivationMode::kInt8);
      const auto x = random_floats(rng, static_cast<size_t>(50) * k, 3.0F);
      const auto weight = random_floats(rng, static_cast<size_t>(k));
      std::vector<int32_t> rows;
      for (int32_t i = 0; i < m; ++i) rows.push_back(pick(rng, 0, 49));
      const bool gather = repeat % 2 == 0;
      Activations out = Activations::allocate(*device.arena, m + 3, k, {true, true, true}).value();
      norm_quant(device.ctx, {x.data(), gather ? rows.data() : nullptr, weight.data(), 1e-5F, m, &out});
      ASSERT_EQ(out.m, m);
      std::vector<double> expected;
      for (int32_t i = 0; i < m; ++i) {
        const auto begin = x.begin() + static_cast<ptrdiff_t>(gather ? rows[static_cast<size_t>(i)] : i) * k;
        const auto y = reference::rms_norm({begin, begin + k}, weight, 1e-5);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      const std::string what = std::string(to_string(isa)) + " m=" + std::to_string(m) +
                               " k=" + std::to_string(k) + " seed=" + std::to_string(test_seed());
      expect_close(f32_rows(out), expected, kF32Math, what);
      expect_quantised(out, what);
    }
  }
}

TEST(NormQuant, BitsDoNotDependOnIsaOrBatch) {
  Rng rng(test_seed() + 1);
  const int32_t k = 590;
  const auto x = random_floats(rng, static_cast<size_t>(33) * k);
  const auto weight = random_floats(rng, k);
  std::vector<float> first;
  for (const CpuIsa isa : supported_isas()) {
    TestDevice device(isa, ActivationMode::kInt8, 3);
    Activations out = Activations::allocate(*device.arena, 33, k, {true, true, true}).value();
    norm_quant(device.ctx, {x.data(), nullptr, weight.data(), 1e-6F, 33, &out});
    const auto batch = f32_rows(out);
    if (first.empty()) first = batch;
    ASSERT_EQ(std::memcmp(batch.data(), first.data(), batch.size() * 4), 0) << to_string(isa);
    for (int32_t i = 0; i < 33; ++i) {
      norm_quant(device.ctx, {x.data(), &i, weight.data(), 1e-6F, 1, &out});
      ASSERT_EQ(std::memcmp(out.f32, first.data() + static_cast<size_t>(i) * k, k * 4), 0) << to_string(isa);
    }
  }
}

// docs/design.md, P2: one bad row fails alone; the others keep their bits.
TEST(NormQuant, NanPoisonsItsOwnRowOnly) {
  Rng rng(test_seed() + 2);
  for (const CpuIsa isa : supported_isas()) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      TestDevice device(isa, ActivationMode::kInt8);
      const int32_t k = 64;
      const auto rows = random_rows(rng, 3, 20, k);
      const LinearWeight weight = device.pack(3, rows, 20, k);
      auto x = random_floats(rng, 3 * k);
      std::vector<float> clean(60);
      std::vector<float> poisoned(60);
      Activations a = device.activations(x, 3, k);
      linear(device.ctx, {&weight, &a, clean.data()});
      x[k + 7] = bad;
      a = device.activations(x, 3, k);
      linear(device.ctx, {&weight, &a, poisoned.data()});
      for (int32_t c = 0; c < 20; ++c) {
        EXPECT_EQ(poisoned[static_cast<size_t>(c)], clean[static_cast<size_t>(c)]);
        EXPECT_TRUE(std::isnan(poisoned[static_cast<size_t>(20 + c)])) << to_string(isa);
        EXPECT_EQ(poisoned[static_cast<size_t>(40 + c)], clean[static_cast<size_t>(40 + c)]);
      }
    }
  }
}

TEST(NormQuant, TinyAndZeroGroupsStayFinite) {
  for (const CpuIsa isa : supported_isas()) {
    TestDevice device(isa, ActivationMode::kInt8);
    std::vector<float> x(96, 0.0F);
    x[40] = 1e-42F;  // subnormal
    x[64] = 1e-30F;
    const Activations a = device.activations(x, 1, 96);
    EXPECT_EQ(a.scale[tile_at(a, 0, 0)], 0.0F);
    EXPECT_EQ(a.scale[tile_at(a, 0, 1)], 0.0F);
    EXPECT_EQ(a.q[tile_at(a, 0, 2) * 32], 127);
  }
}

TEST(GateUpAct, MatchesFloat64) {
  Rng rng(test_seed() + 3);
  for (const CpuIsa isa : supported_isas()) {
    for (const GatedActivation activation : {GatedActivation::kSilu, GatedActivation::kGeluTanh}) {
      for (int32_t repeat = 0; repeat < 4; ++repeat) {
        TestDevice device(isa, ActivationMode::kF32);
        const int32_t m = repeat == 0 ? 1 : pick(rng, 1, 130);
        const int32_t n = pick(rng, 1, 300);
        const int32_t k = 32 * pick(rng, 1, 5);
        const auto gate_rows = random_rows(rng, 8, n, k);
        const auto up_rows = random_rows(rng, 3, n, k);
        const LinearWeight gate = device.pack(8, gate_rows, n, k);
        const LinearWeight up = device.pack(3, up_rows, n, k);
        const auto x = random_floats(rng, static_cast<size_t>(m) * k);
        const Activations a = device.activations(x, m, k);
        const size_t scratch_floats = static_cast<size_t>(2 * m) * static_cast<size_t>(n);
        std::vector<float> scratch(scratch_floats + 1, 12345.0F);  // a guard behind the end
        Activations out = Activations::allocate(*device.arena, m, n, {true, true, true}).value();
        gate_up_act(device.ctx, {&a, &gate, &up, activation, scratch.data(), &out});
        EXPECT_EQ(scratch[scratch_floats], 12345.0F) << "scratch overrun";
        const auto g = reference::linear(dequantised(8, gate_rows, n, k), x, m, n, k, {});
        const auto u = reference::linear(dequantised(3, up_rows, n, k), x, m, n, k, {});
        std::vector<double> expected;
        for (size_t i = 0; i < g.size(); ++i) {
          expected.push_back(
              (activation == GatedActivation::kSilu ? reference::silu(g[i]) : reference::gelu_tanh(g[i])) *
              u[i]);
        }
        const std::string what = std::string(to_string(isa)) + " m=" + std::to_string(m) +
                                 " n=" + std::to_string(n) + " k=" + std::to_string(k) +
                                 " seed=" + std::to_string(test_seed());
        expect_close(f32_rows(out), expected, kF32Math, what);
        expect_quantised(out, what);
      }
    }
  }
}

TEST(GateUpAct, ExtremeGatesStayFinite) {
  for (const CpuIsa isa : supported_isas()) {
    TestDevice device(isa, ActivationMode::kF32, 1);
    // Weight 1 x 1: gate = x * 1.
    const LinearWeight one = device.pack(0, as_bytes({1.0F}), 1, 1);
    for (const float x : {-1e30F, -200.0F, -90.0F, -0.0F, 0.0F, 90.0F, 200.0F, 1e15F}) {
      const Activations a = device.activations({x}, 1, 1);
      float scratch[2];
      Activations out = Activations::allocate(*device.arena, 1, 1, {.f32 = true}).value();
      gate_up_act(device.ctx, {&a, &one, &one, GatedActivation::kSilu, scratch, &out});
      const double expected = reference::silu(x) * x;
      EXPECT_NEAR(out.f32[0], expected, std::abs(expected) * 1e-6 + 1e-30) << to_string(isa) << " x=" << x;
    }
  }
}

TEST(Embed, RowsAreExactAndForeignIdsAreZero) {
  Rng rng(test_seed() + 4);
  for (const uint32_t type : kAllTypes) {
    TestDevice device(CpuIsa::kAuto, ActivationMode::kInt8);
    const int32_t n = 37;
    const int32_t k = 256;
    const auto rows = random_rows(rng, type, n, k);
    const auto expected = dequantised(type, rows, n, k);
    const LinearWeight table = device.pack(type, rows, n, k);
    std::vector<int32_t> ids = {99, 100, 136, 137, -1};
    for (int32_t i = 0; i < 60; ++i) ids.push_back(pick(rng, 100, 136));
    std::vector<float> out(ids.size() * k, NAN);
    embed(device.ctx, {&table, ids.data(), 100, static_cast<int32_t>(ids.size()), out.data()});
    for (size_t i = 0; i < ids.size(); ++i) {
      const int32_t row = ids[i] - 100;
      for (size_t c = 0; c < k; ++c) {
        const float want = row < 0 || row >= n ? 0.0F : expected[static_cast<size_t>(row) * k + c];
        ASSERT_EQ(out[i * k + c], want) << kernels::ggml_type_name(type) << " id " << ids[i];
      }
    }
  }
}

}  // namespace
}  // namespace omnibus
