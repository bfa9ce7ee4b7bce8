// How far a kernel may be from the float64 loops: one table for all devices and instruction sets. NMSE is the
// sum of squared errors over the sum of squared references; `max` bounds the largest error relative to the
// root mean square of the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace omnibus {

struct Tolerance {
  double nmse;
  double max;
};

// Float activations, weights of any type as dequantised: only the order of f32 sums differs.
inline constexpr Tolerance kF32Math{1e-12, 1e-5};
// int8 activations per group of 32 against exact ones.
inline constexpr Tolerance kInt8Math{2e-4, 0.1};
// int8 activations against float64 over the same quantised values: only f32 rounding is left.
inline constexpr Tolerance kInt8Exact{1e-12, 1e-5};
// Attention over a bf16 cache, against float64 over the same cache: queries and probabilities round to bf16.
inline constexpr Tolerance kBf16Attention{2e-5, 0.03};
// A value rounded to bf16 once.
inline constexpr Tolerance kBf16Rounding{1e-5, 0.004};
inline constexpr Tolerance kF32Attention{1e-11, 3e-5};

template <typename T>
inline void expect_close(const std::vector<T>& got, const std::vector<double>& expected, Tolerance tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double error = 0;
  double power = 0;
  for (const double e : expected) power += e * e;
  const double rms = std::sqrt(power / static_cast<double>(std::max<size_t>(got.size(), 1)));
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - expected[i]);
    error += difference * difference;
    const double allowed = tolerance.max * std::max(rms, std::abs(expected[i])) + 1e-15;
    ASSERT_TRUE(difference <= allowed)  // a NaN fails too
        << what << ": element " << i << " is " << got[i] << ", expected " << expected[i] << ", rms " << rms;
  }
  EXPECT_LE(error, tolerance.nmse * power + 1e-30) << what << ": NMSE " << error / power;
}

}  // namespace omnibus
