#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "omnibus/compute/ops/qkv_rope_kv_write.h"

#include "kernels/random_weights.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/rows.h"
#include "kernels/tolerance.h"

namespace omnibus {
namespace {

struct Case {
  int32_t heads, kv_heads, head_dim, rope_dims, m, hidden;
  bool neox, norms;
  DType dtype;
};

struct Tables {
  std::vector<float> cos, sin;
  std::vector<std::vector<double>> angles;  // by position
};

Tables rope_tables(int32_t dims, int32_t positions) {
  Tables t;
  for (int32_t p = 0; p < positions; ++p) {
    t.angles.emplace_back();
    for (int32_t i = 0; i < dims / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / dims);
      t.angles.back().push_back(angle);
      t.cos.push_back(static_cast<float>(std::cos(angle)));
      t.sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return t;
}

// Element of the paged cache by its documented layout.
double cached(const KVCacheView& kv, int64_t slot, int32_t head, bool value, int32_t d) {
  const int64_t half = int64_t{16} * kv.head_dim;
  const int64_t t = slot % 16;
  const int64_t at = head * 2 * half + (value ? half + (t / 2 * kv.head_dim + d) * 2 + t % 2
                                              : (int64_t{d / 2} * 16 + t) * 2 + d % 2);
  const char* block = static_cast<const char*>(kv.data) + slot / 16 * kv.block_bytes;
  if (kv.dtype == DType::kF32) return reinterpret_cast<const float*>(block)[at];
  return bf16_to_f32(reinterpret_cast<const uint16_t*>(block)[at]);
}

class Qkv {
 public:
  Qkv(Rng& rng, const Case& c) : c_(c), tables_(rope_tables(c.rope_dims, kPositions)) {
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t n = (i == 0 ? c.heads : c.kv_heads) * c.head_dim;
      rows_[i] = random_rows(rng, 8, n, c.hidden);
      bias_[i] = random_floats(rng, static_cast<size_t>(n));
    }
    x_ = random_floats(rng, static_cast<size_t>(c.m) * c.hidden);
    norm_[0] = random_floats(rng, static_cast<size_t>(c.head_dim));
    norm_[1] = random_floats(rng, static_cast<size_t>(c.head_dim));
    const int32_t first = pick(rng, 0, 40);
    for (int32_t i = 0; i < c.m; ++i) {
      positions_.push_back(first + i);
      slots_.push_back((7 - (first + i) / 16) * 16 + (first + i) % 16);  // blocks in falling order
    }
    if (c.m > 2) slots_[1] = -1;
    data_.assign(static_cast<size_t>(kv_block_bytes(c.dtype, c.kv_heads, c.head_dim)) * 8, 0xFF);  // NaNs
  }

  void run(TestDevice& device) {
    LinearWeight w[3];
    for (int32_t i = 0; i < 3; ++i) {
      w[i] = device.pack(8, rows_[i], static_cast<int32_t>(bias_[i].size()), c_.hidden);
      w[i].bias = bias_[i].data();
    }
    const Activations x = device.activations(x_, c_.m, c_.hidden);
    const auto width = static_cast<size_t>((c_.heads + 2 * c_.kv_heads) * c_.head_dim);
    std::vector<float> scratch(static_cast<size_t>(c_.m) * width);
    q_out_.assign(static_cast<size_t>(c_.m) * static_cast<size_t>(c_.heads * c_.head_dim), NAN);
    kv_ = {data_.data(),
           c_.dtype,
           c_.kv_heads,
           c_.head_dim,
           kv_block_bytes(c_.dtype, c_.kv_heads, c_.head_dim),
           8};
    const RopeTable rope{tables_.cos.data(), tables_.sin.data(), c_.rope_dims, kPositions, c_.neox};
    qkv_rope_kv_write(device.ctx, {&x, &w[0], &w[1], &w[2], c_.norms ? norm_[0].data() : nullptr,
                                   c_.norms ? norm_[1].data() : nullptr, 1e-6F, rope, positions_.data(),
                                   slots_.data(), kv_, c_.heads, scratch.data(), q_out_.data()});
  }

  void check(const std::string& what) const {
    std::vector<double> expected = projection(0);
    for (size_t i = 0; i < static_cast<size_t>(c_.m * c_.heads); ++i)
      rotate(expected, i, i / size(c_.heads), 0);
    expect_close(q_out_, expected, kF32Math, what + " q");
    std::vector<double> k = projection(1);
    for (size_t i = 0; i < static_cast<size_t>(c_.m * c_.kv_heads); ++i)
      rotate(k, i, i / size(c_.kv_heads), 1);
    check_cache(k, false, what + " k");
    check_cache(projection(2), true, what + " v");
    check_rest_is_zero(what);
  }

 private:
  static constexpr int32_t kPositions = 128;
  static size_t size(int32_t n) { return static_cast<size_t>(n); }

  std::vector<double> projection(int32_t i) const {
    const auto n = static_cast<int32_t>(bias_[i].size());
    return reference::linear(dequantised(8, rows_[i], n, c_.hidden), x_, c_.m, n, c_.hidden, bias_[i]);
  }

  void rotate(std::vector<double>& all, size_t head, size_t row, int32_t norm) const {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(head) * c_.head_dim;
    std::vector<double> one(begin, begin + c_.head_dim);
    if (c_.norms) {
      one = reference::rms_norm(std::vector<float>(one.begin(), one.end()), norm_[norm], 1e-6);
    }
    reference::rope(one, tables_.angles[size(positions_[row])], c_.neox);
    std::copy(one.begin(), one.end(), begin);
  }

  void check_cache(const std::vector<double>& expected, bool value, const std::string& what) const {
    std::vector<double> got;
    std::vector<double> want;
    for (int32_t i = 0; i < c_.m; ++i) {
      if (slots_[size(i)] < 0) continue;
      for (int32_t h = 0; h < c_.kv_heads; ++h) {
        for (int32_t d = 0; d < c_.head_dim; ++d) {
          got.push_back(cached(kv_, slots_[size(i)], h, value, d));
          want.push_back(expected[size((i * c_.kv_heads + h) * c_.head_dim + d)]);
        }
      }
    }
    expect_close(got, want, c_.dtype == DType::kF32 ? kF32Math : kBf16Rounding, what);
  }

  // After the last row of each block nothing of what stood there before is left.
  void check_rest_is_zero(const std::string& what) const {
    for (int32_t i = 0; i < c_.m; ++i) {
      const int64_t slot = slots_[size(i)];
      const bool last = std::none_of(slots_.begin() + i + 1, slots_.end(),
                                     [&](int64_t s) { return s >= 0 && s / 16 == slot / 16; });
      if (slot < 0 || !last) continue;
      for (int64_t s = slot + 1; s % 16 != 0; ++s) {
        for (int32_t h = 0; h < c_.kv_heads; ++h) {
          for (int32_t d = 0; d < c_.head_dim; ++d) {
            ASSERT_EQ(cached(kv_, s, h, false, d), 0.0) << what << " slot " << s;
            ASSERT_EQ(cached(kv_, s, h, true, d), 0.0) << what << " slot " << s;
          }
        }
      }
    }
  }

  Case c_;
  Tables tables_;
  std::vector<uint8_t> rows_[3];
  std::vector<float> bias_[3], norm_[2], x_, q_out_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> slots_;
  std::vector<uint8_t> data_;
  KVCacheView kv_;
};

TEST(QkvRopeKvWrite, MatchesFloat64AndTheDocumentedLayout) {
  Rng rng(test_seed());
  for (const CpuIsa isa : supported_isas()) {
    for (int32_t repeat = 0; repeat < 12; ++repeat) {
      Case c{};
      c.kv_heads = pick(rng, 1, 3);
      c.heads = c.kv_heads * pick(rng, 1, 4);
      c.head_dim = 2 * pick(rng, 4, 40);
      c.rope_dims = repeat % 3 == 0 ? 2 * pick(rng, 1, c.head_dim / 2) : c.head_dim;
      c.m = repeat < 3 ? 1 : pick(rng, 1, 50);
      c.hidden = 32 * pick(rng, 1, 4);
      c.neox = repeat % 2 == 0;
      c.norms = repeat % 4 == 1;
      c.dtype = repeat % 2 == 0 ? DType::kF32 : DType::kBF16;
      TestDevice device(isa, ActivationMode::kF32);
      Qkv qkv(rng, c);
      qkv.run(device);
      qkv.check(std::string(to_string(isa)) + " heads=" + std::to_string(c.heads) + "/" +
                std::to_string(c.kv_heads) + " dim=" + std::to_string(c.head_dim) +
                " m=" + std::to_string(c.m) + " seed=" + std::to_string(test_seed()));
    }
  }
}

}  // namespace
}  // namespace omnibus
