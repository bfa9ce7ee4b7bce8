// Row-wise ops in float64: the oracle of norm, gated activation and rotary embedding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibus::reference {

inline std::vector<double> rms_norm(const std::vector<float>& x, const std::vector<float>& weight,
                                    double eps) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  const double factor = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * factor * weight[i]);
  return y;
}

inline double silu(double x) { return x / (1.0 + std::exp(-x)); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Rotates one head in place by the position's angles: pairs (2i, 2i + 1), or (i, i + dims / 2) for neox.
inline void rope(std::vector<double>& head, const std::vector<double>& angles, bool neox) {
  const size_t half = angles.size();
  for (size_t i = 0; i < half; ++i) {
    double& a = head[neox ? i : 2 * i];
    double& b = head[neox ? i + half : 2 * i + 1];
    const double x = a;
    a = x * std::cos(angles[i]) - b * std::sin(angles[i]);
    b = x * std::sin(angles[i]) + b * std::cos(angles[i]);
  }
}

}  // namespace omnibus::reference
