#include "kernels/reference/linear.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "omnibus/compute/ops/linear.h"

#include "kernels/random_weights.h"
#include "kernels/tolerance.h"

namespace omnibus {
namespace {

std::string label(CpuIsa isa, uint32_t type, int32_t m, int32_t n, int32_t k) {
  return std::string(to_string(isa)) + " " + kernels::ggml_type_name(type) + " m=" + std::to_string(m) +
         " n=" + std::to_string(n) + " k=" + std::to_string(k) + " seed=" + std::to_string(test_seed());
}

// k that the type allows, with tails where it can have them.
int32_t random_k(Rng& rng, uint32_t type) {
  const int32_t block = kernels::block_layout(type).elements;
  if (block == 1) return pick(rng, 1, 400);
  return block * pick(rng, 1, block == 32 ? 20 : 3);
}

std::vector<float> run_linear(TestDevice& device, const LinearWeight& weight, const Activations& x) {
  std::vector<float> out(static_cast<size_t>(x.m) * static_cast<size_t>(weight.n), NAN);
  linear(device.ctx, {&weight, &x, out.data()});
  return out;
}

TEST(Linear, FloatModeMatchesFloat64) {
  Rng rng(test_seed());
  for (const CpuIsa isa : supported_isas()) {
    for (const uint32_t type : kAllTypes) {
      for (int32_t repeat = 0; repeat < 3; ++repeat) {
        TestDevice device(isa, ActivationMode::kF32);
        const int32_t m = pick(rng, 1, 70);
        const int32_t n = pick(rng, 1, 100);
        const int32_t k = random_k(rng, type);
        const auto rows = random_rows(rng, type, n, k);
        const auto x = random_floats(rng, static_cast<size_t>(m) * k);
        LinearWeight weight = device.pack(type, rows, n, k);
        const auto bias = random_floats(rng, static_cast<size_t>(n));
        weight.bias = bias.data();
        const auto got = run_linear(device, weight, device.activations(x, m, k));
        expect_close(got, reference::linear(dequantised(type, rows, n, k), x, m, n, k, bias), kF32Math,
                     label(isa, type, m, n, k));
      }
    }
  }
}

// Against float64 over the quantised activations the integer path is exact up to f32 rounding; against the
// true activations it has int8's error.
TEST(Linear, Int8ModeMatchesFloat64) {
  Rng rng(test_seed() + 1);
  for (const CpuIsa isa : supported_isas()) {
    for (const uint32_t type : kPanelTypes) {
      for (int32_t repeat = 0; repeat < 4; ++repeat) {
        TestDevice device(isa, ActivationMode::kInt8);
        const int32_t m = pick(rng, 1, 70);
        const int32_t n = pick(rng, 1, 100);
        const int32_t k = random_k(rng, type);
        const auto rows = random_rows(rng, type, n, k);
        const auto x = random_floats(rng, static_cast<size_t>(m) * k);
        const LinearWeight weight = device.pack(type, rows, n, k);
        const Activations a = device.activations(x, m, k);
        std::vector<float> quantised(x.size());
        for (int32_t i = 0; i < m; ++i) {
          for (int32_t c = 0; c < k; ++c) {
            const size_t at = static_cast<size_t>((i / 16 * (k / 32) + c / 32) * 16 + i % 16);
            quantised[static_cast<size_t>(i) * k + c] =
                a.scale[at] * static_cast<float>(a.q[at * 32 + static_cast<size_t>(c % 32)]);
          }
        }
        const auto got = run_linear(device, weight, a);
        const auto w = dequantised(type, rows, n, k);
        const std::string what = label(isa, type, m, n, k);
        expect_close(got, reference::linear(w, quantised, m, n, k, {}), kInt8Exact, what);
        expect_close(got, reference::linear(w, x, m, n, k, {}), kInt8Math, what);
      }
    }
  }
}

// One row, one answer (docs/design.md, P5): row i of any batch has the bits it has alone, with any number of
// threads.
TEST(Linear, BitsDoNotDependOnRowsOrThreads) {
  Rng rng(test_seed() + 2);
  for (const CpuIsa isa : supported_isas()) {
    for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
      for (const uint32_t type : {2U, 3U, 6U, 7U, 8U, 0U, 1U, 30U, 12U}) {
        const int32_t k = 256 * pick(rng, 1, 2);
        const int32_t n = pick(rng, 33, 100);
        const auto rows = random_rows(rng, type, n, k);
        const auto x = random_floats(rng, static_cast<size_t>(64) * k);
        TestDevice one(isa, mode, 1);
        const LinearWeight weight = one.pack(type, rows, n, k, UnitCuts::of_ffn(k));
        std::vector<float> alone;
        for (int32_t i = 0; i < 64; ++i) {
          const std::vector<float> row(x.begin() + static_cast<ptrdiff_t>(i) * k,
                                       x.begin() + static_cast<ptrdiff_t>(i + 1) * k);
          const auto y = run_linear(one, weight, one.activations(row, 1, k));
          alone.insert(alone.end(), y.begin(), y.end());
        }
        const int32_t step = isa == CpuIsa::kGeneric ? 9 : 1;  // plain C++ is slow and has fewer tiles
        for (const int32_t threads : {1, 2, 3}) {
          TestDevice device(isa, mode, threads);
          Activations a = device.activations(x, 64, k);
          for (int32_t m = 1; m <= 64; m += threads == 1 ? step : 31) {
            a.m = m;
            const auto got = run_linear(device, weight, a);
            ASSERT_EQ(std::memcmp(got.data(), alone.data(), got.size() * sizeof(float)), 0)
                << label(isa, type, m, n, k) << " threads=" << threads;
          }
        }
      }
    }
  }
}

// f32 mode and the integer path are the same bits on every instruction set.
TEST(Linear, BitsDoNotDependOnIsa) {
  Rng rng(test_seed() + 3);
  for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
    for (const uint32_t type : kAllTypes) {
      const int32_t m = pick(rng, 1, 40);
      const int32_t n = pick(rng, 1, 80);
      const int32_t k = random_k(rng, type);
      const auto rows = random_rows(rng, type, n, k);
      const auto x = random_floats(rng, static_cast<size_t>(m) * k);
      std::vector<float> first;
      for (const CpuIsa isa : supported_isas()) {
        TestDevice device(isa, mode);
        const auto got = run_linear(device, device.pack(type, rows, n, k, UnitCuts::of_ffn(k)),
                                    device.activations(x, m, k));
        if (first.empty()) first = got;
        ASSERT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0)
            << label(isa, type, m, n, k);
      }
    }
  }
}

// The fixed tree: left = the first ceil(n / 2) leaves (docs/cpu-kernels.md).
float tree(const std::vector<float>& leaves, size_t first, size_t n) {
  if (n == 1) return leaves[first];
  const size_t left = (n + 1) / 2;
  return tree(leaves, first, left) + tree(leaves, first + left, n - left);
}

// A product over units is the tree over products that see one unit each.
TEST(Linear, UnitsAreSummedInTheFixedTree) {
  Rng rng(test_seed() + 4);
  for (const CpuIsa isa : supported_isas()) {
    for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
      for (const int32_t units : {1, 2, 3, 5, 7, 8, 9, 16, 17}) {
        TestDevice device(isa, mode);
        const int32_t k = 32 * pick(rng, units, 40);
        const int32_t n = 40;
        const int32_t m = pick(rng, 1, 19);
        UnitCuts cuts{{0}};
        for (int32_t u = 1; u <= units; ++u) cuts.k_begin.push_back(u * (k / 32) / units * 32);
        const auto rows = random_rows(rng, 3, n, k);
        const auto x = random_floats(rng, static_cast<size_t>(m) * k);
        const auto got = run_linear(device, device.pack(3, rows, n, k, cuts), device.activations(x, m, k));
        std::vector<std::vector<float>> parts;
        for (int32_t u = 0; u < units; ++u) {
          const int32_t begin = cuts.k_begin[static_cast<size_t>(u)];
          const int32_t width = cuts.k_begin[static_cast<size_t>(u) + 1] - begin;
          std::vector<uint8_t> part_rows;
          std::vector<float> part_x;
          for (int32_t r = 0; r < n; ++r) {
            const auto at = rows.begin() + (static_cast<ptrdiff_t>(r) * k + begin) / 32 * 20;
            part_rows.insert(part_rows.end(), at, at + width / 32 * 20);
          }
          for (int32_t i = 0; i < m; ++i) {
            const auto at = x.begin() + static_cast<ptrdiff_t>(i) * k + begin;
            part_x.insert(part_x.end(), at, at + width);
          }
          parts.push_back(
              run_linear(device, device.pack(3, part_rows, n, width), device.activations(part_x, m, width)));
        }
        for (size_t i = 0; i < got.size(); ++i) {
          std::vector<float> leaves;
          for (const auto& p : parts) leaves.push_back(p[i]);
          ASSERT_EQ(got[i], tree(leaves, 0, leaves.size()))
              << to_string(isa) << " units=" << units << " k=" << k << " seed=" << test_seed();
        }
      }
    }
  }
}

TEST(Linear, ResidualAddsInPlace) {
  Rng rng(test_seed() + 5);
  for (const CpuIsa isa : supported_isas()) {
    TestDevice device(isa, ActivationMode::kInt8);
    const int32_t m = 5;
    const int32_t n = 50;
    const int32_t k = 96;
    const auto rows = random_rows(rng, 3, n, k);
    LinearWeight weight = device.pack(3, rows, n, k);
    const auto bias = random_floats(rng, n);
    weight.bias = bias.data();
    const Activations x = device.activations(random_floats(rng, m * k), m, k);
    const auto y = run_linear(device, weight, x);
    const auto before = random_floats(rng, m * n);
    auto residual = before;
    linear_residual(device.ctx, {&weight, &x, residual.data()});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(residual[i], before[i] + y[i]);
  }
}

}  // namespace
}  // namespace omnibus
