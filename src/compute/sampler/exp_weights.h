// Unnormalised softmax weights of one row, in vector-friendly plain C: no libm, no fma, the same bits on
// every machine.
#pragma once

#include <cstddef>

namespace omnibus {

// out[i] = exp((logits[i] - max) / temperature) in f32, relative error <= 2e-7; 0 below exp(-87). -inf gives
// 0. Each block of kWeightBlock has its sum (f64, four fixed lanes) in block_sums[ceil(n / kWeightBlock)].
inline constexpr size_t kWeightBlock = 256;
void exp_weights(const float* logits, size_t n, float max, float temperature, float* out, double* block_sums);

// One value, the same function.
float exp_weight(float logit, float max, float temperature);

}  // namespace omnibus
