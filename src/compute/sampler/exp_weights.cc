#include "exp_weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace omnibus {
namespace {

// exp(x) for x <= 0: x = n ln2 + r, |r| <= ln2 / 2, degree-6 Taylor polynomial, 2^n put into the exponent.
inline float exp_nonpositive(float x) {
  const bool underflow = !(x > -87.0F);  // also -inf and NaN
  x = underflow ? -87.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const int32_t exponent = (std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound)) << 23;
  const float value = std::bit_cast<float>(std::bit_cast<int32_t>(p) + exponent);
  return underflow ? 0.0F : value;
}

}  // namespace

float exp_weight(float logit, float max, float temperature) {
  return exp_nonpositive((logit - max) / temperature);
}

void exp_weights(const float* logits, size_t n, float max, float temperature, float* out,
                 double* block_sums) {
  for (size_t begin = 0; begin < n; begin += kWeightBlock) {
    const size_t end = std::min(n, begin + kWeightBlock);
    for (size_t i = begin; i < end; ++i) out[i] = exp_nonpositive((logits[i] - max) / temperature);
    double lanes[4] = {};
    size_t i = begin;
    for (; i + 4 <= end; i += 4)
      for (size_t lane = 0; lane < 4; ++lane) lanes[lane] += static_cast<double>(out[i + lane]);
    for (size_t lane = 0; i < end; ++i, ++lane) lanes[lane] += static_cast<double>(out[i]);
    block_sums[begin / kWeightBlock] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }
}

}  // namespace omnibus
