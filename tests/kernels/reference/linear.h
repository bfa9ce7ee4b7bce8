// y = x W^T in float64, the oracle of every matmul.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibus::reference {

// w [n, k] and x [m, k] row-major, bias [n] or empty; y [m, n].
inline std::vector<double> linear(const std::vector<float>& w, const std::vector<float>& x, int32_t m,
                                  int32_t n, int32_t k, const std::vector<float>& bias) {
  std::vector<double> y(static_cast<size_t>(m) * n);
  for (int32_t i = 0; i < m; ++i) {
    for (int32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int32_t c = 0; c < k; ++c) {
        sum += static_cast<double>(x[static_cast<size_t>(i) * k + c]) * w[static_cast<size_t>(j) * k + c];
      }
      y[static_cast<size_t>(i) * n + j] = sum + (bias.empty() ? 0.0 : bias[static_cast<size_t>(j)]);
    }
  }
  return y;
}

}  // namespace omnibus::reference
