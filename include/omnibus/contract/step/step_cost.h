// StepCost: predicted duration of a step; fitted at warm-up and updated online. Gives step deadlines and the
// default token budget.
#pragma once

#include <cstdint>

namespace omnibus {

struct StepCost {
  double fixed_ns = 0;
  double per_token_ns = 0;
  double per_kv_token_ns = 0;  // per (computed token, attended token) pair

  double predict_ns(int64_t tokens, int64_t kv_tokens) const {
    return fixed_ns + per_token_ns * static_cast<double>(tokens) +
           per_kv_token_ns * static_cast<double>(kv_tokens);
  }
};

}  // namespace omnibus
