// Random tensors in file layout, and a pool and context for each instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus/compute/core/compute_pool.h"
#include "omnibus/compute/ops/device_ops.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_table.h"
#include "omnibus_kernels/cpu_table.h"
#include "omnibus_kernels/dequant.h"

namespace omnibus {

using Rng = std::mt19937;

// Printed by every random test; OMNIBUS_TEST_SEED replays one.
inline uint32_t test_seed() {
  static const uint32_t seed = [] {
    const char* given = std::getenv("OMNIBUS_TEST_SEED");
    return given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 20240611U;
  }();
  return seed;
}

inline std::vector<float> random_floats(Rng& rng, size_t n, float scale = 1.0F) {
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(rng);
  return x;
}

inline int32_t pick(Rng& rng, int32_t low, int32_t high) {
  return std::uniform_int_distribution<int32_t>(low, high)(rng);
}

// Any bit pattern is a valid block as long as its f16 scales are finite: random bytes with small scales.
inline std::vector<uint8_t> random_rows(Rng& rng, uint32_t ggml_type, int32_t n, int32_t k) {
  const kernels::BlockLayout layout = kernels::block_layout(ggml_type);
  const size_t blocks = static_cast<size_t>(n) * static_cast<size_t>(k / layout.elements);
  std::vector<uint8_t> rows(blocks * static_cast<size_t>(layout.bytes));
  for (uint8_t& b : rows) b = static_cast<uint8_t>(rng());
  std::vector<int32_t> halves;  // offsets of f16 scales
  switch (ggml_type) {
    case 2:
    case 6:
    case 8:
      halves = {0};
      break;
    case 3:
    case 7:
    case 12:
    case 13:
      halves = {0, 2};
      break;
    case 10:
      halves = {80, 82};
      break;
    case 11:
      halves = {108};
      break;
    case 14:
      halves = {208};
      break;
    default:
      break;
  }
  const auto put = [&](size_t at, float value) {
    const uint16_t bits = f32_to_f16(value);
    std::memcpy(rows.data() + at, &bits, 2);
  };
  std::normal_distribution<float> normal(0.0F, 0.02F);
  for (size_t b = 0; b < blocks; ++b) {
    const size_t at = b * static_cast<size_t>(layout.bytes);
    for (const int32_t h : halves) put(at + static_cast<size_t>(h), normal(rng));
    if (ggml_type == 0) {
      const float v = normal(rng);
      std::memcpy(rows.data() + at, &v, 4);
    } else if (ggml_type == 1) {
      put(at, normal(rng));
    } else if (ggml_type == 30) {
      const uint16_t bits = f32_to_bf16(normal(rng));
      std::memcpy(rows.data() + at, &bits, 2);
    }
  }
  return rows;
}

inline std::vector<float> dequantised(uint32_t ggml_type, const std::vector<uint8_t>& rows, int32_t n,
                                      int32_t k) {
  std::vector<float> out(static_cast<size_t>(n) * static_cast<size_t>(k));
  EXPECT_TRUE(dequantize_row(ggml_type, rows, out).ok());
  return out;
}

inline std::vector<uint8_t> as_bytes(const std::vector<float>& x) {
  std::vector<uint8_t> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return bytes;
}

// A context with its pool and a scratch arena.
struct TestDevice {
  std::unique_ptr<ComputePool> pool;
  std::unique_ptr<Allocator> arena;
  OpContext ctx;

  explicit TestDevice(CpuIsa isa, ActivationMode mode, int32_t threads = 2, size_t arena_bytes = 64 << 20)
      : pool(ComputePool::create(threads, false).value()),
        arena(make_arena_allocator("test", arena_bytes).value()),
        ctx(make_op_context({DeviceKind::kCpu, 0}, isa, mode, pool.get(), nullptr).value()) {}

  LinearWeight pack(uint32_t ggml_type, const std::vector<uint8_t>& rows, int32_t n, int32_t k,
                    const UnitCuts& units = {}) {
    auto weight = pack_linear(ctx, {"w", ggml_type, n, k, rows, units}, *arena);
    EXPECT_TRUE(weight.ok()) << weight.status();
    return std::move(weight).value();
  }

  // x [m, k] in every form: what an op that produces activations would leave.
  Activations activations(const std::vector<float>& x, int32_t m, int32_t k, int32_t max_m = 0) {
    Activations a = Activations::allocate(*arena, std::max(m, max_m), k, {true, true, true}).value();
    a.m = m;
    const kernels::ActStore store{
        a.f32, a.q, a.scale, a.group_sum, a.scaled_sum, k, static_cast<int32_t>(padded_k(k) / kQuantGroup)};
    for (int32_t i = 0; i < m; ++i)
      ctx.table->cpu->store_row(x.data() + static_cast<size_t>(i) * k, i, store);
    return a;
  }
};

inline constexpr uint32_t kAllTypes[] = {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 30};
inline constexpr uint32_t kPanelTypes[] = {2, 3, 6, 7, 8};

}  // namespace omnibus
