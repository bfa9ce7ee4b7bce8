// Causal attention in float64 over plain K and V, the oracle of every attention kernel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibus::reference {

struct AttentionShape {
  int32_t heads, kv_heads, head_dim;
  int32_t n_query, context;
  int32_t window;  // 0: none
  double scale;
};

// q [n_query, heads, head_dim]; k, v [context, kv_heads, head_dim]; out as q.
inline std::vector<double> attention(const AttentionShape& s, const std::vector<float>& q,
                                     const std::vector<float>& k, const std::vector<float>& v) {
  std::vector<double> out(q.size());
  const auto at = [&](int32_t token, int32_t head, int32_t heads) {
    return (static_cast<size_t>(token) * static_cast<size_t>(heads) + static_cast<size_t>(head)) *
           static_cast<size_t>(s.head_dim);
  };
  for (int32_t t = 0; t < s.n_query; ++t) {
    const int32_t position = s.context - s.n_query + t;
    const int32_t first = s.window > 0 ? std::max(0, position - s.window + 1) : 0;
    for (int32_t h = 0; h < s.heads; ++h) {
      const int32_t kv_head = h / (s.heads / s.kv_heads);
      std::vector<double> score;
      for (int32_t p = first; p <= position; ++p) {
        double dot = 0;
        for (int32_t d = 0; d < s.head_dim; ++d) {
          dot += static_cast<double>(q[at(t, h, s.heads) + static_cast<size_t>(d)]) *
                 k[at(p, kv_head, s.kv_heads) + static_cast<size_t>(d)];
        }
        score.push_back(dot * s.scale);
      }
      const double top = *std::max_element(score.begin(), score.end());
      double sum = 0;
      for (double& x : score) sum += x = std::exp(x - top);
      for (int32_t p = first; p <= position; ++p) {
        for (int32_t d = 0; d < s.head_dim; ++d) {
          out[at(t, h, s.heads) + static_cast<size_t>(d)] +=
              score[static_cast<size_t>(p - first)] / sum *
              v[at(p, kv_head, s.kv_heads) + static_cast<size_t>(d)];
        }
      }
    }
  }
  return out;
}

}  // namespace omnibus::reference
