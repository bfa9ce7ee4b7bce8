// StepBudget: what the plan of one step may still take: tokens, and beside decodes time as well.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "omnibus/contract/step/step_cost.h"

namespace omnibus {

class StepBudget {
 public:
  explicit StepBudget(int32_t tokens) : tokens_(tokens) {}

  int32_t tokens() const { return tokens_; }
  // A row of `n` tokens from position `base` on is planned.
  void take(int32_t n, int32_t base) {
    tokens_ -= n;
    kv_tokens_ += pairs(n, base);
    taken_ += n;
    if (timed_) has_prefill_ = true;
  }
  // From here on prefills are planned beside the decodes taken so far, whose tokens wait for the step:
  // together they may take `target_ns`, or twice the decodes' own time where that is more, so that prompts
  // advance on the slowest machine, too.
  void limit_time(const StepCost& cost, int64_t target_ns) {
    cost_ = cost;
    const double decodes = cost.predict_ns(taken_, kv_tokens_);
    allowed_ns_ = std::max(static_cast<double>(target_ns), 2 * decodes);
    timed_ = true;
  }
  // The most tokens that a prefill from `base` on may compute. The first of a step gets `least` at least.
  int32_t room(int32_t base, int32_t least) const {
    if (!timed_) return tokens_;
    const double in_time = tokens_in_time(base);
    const double wanted = has_prefill_ ? in_time : std::max(in_time, static_cast<double>(least));
    return static_cast<int32_t>(std::min(wanted, static_cast<double>(tokens_)));
  }

 private:
  // (computed token, attended token) pairs.
  static int64_t pairs(int64_t n, int64_t base) { return n * base + n * (n + 1) / 2; }
  // The largest n with per_token * n + per_kv_token * pairs(n, base) within the time that is left.
  double tokens_in_time(int32_t base) const {
    const double left = allowed_ns_ - cost_.predict_ns(taken_, kv_tokens_);
    if (left <= 0) return 0;
    const double square = cost_.per_kv_token_ns / 2;
    const double linear = cost_.per_token_ns + cost_.per_kv_token_ns * (base + 0.5);
    if (linear <= 0) return static_cast<double>(tokens_);
    // In the form that does not cancel for a small square.
    return std::floor(2 * left / (linear + std::sqrt(linear * linear + 4 * square * left)));
  }

  int32_t tokens_;
  int64_t taken_ = 0, kv_tokens_ = 0;
  bool timed_ = false, has_prefill_ = false;
  StepCost cost_;
  double allowed_ns_ = 0;
};

}  // namespace omnibus
