// StepCostFit: the cost of a step, fitted to the steps that were measured, and from it how long a step may
// take. Least squares of relative errors over (1, tokens, attended pairs) with coefficients >= 0. Steps of
// like size share a bucket, which forgets its oldest: hours of decoding do not wipe out what is known about
// prompts. A single step that was far from its prediction, either way, moves it little.
#pragma once

#include <array>
#include <cstdint>

#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/contract/step/step_cost.h"

namespace omnibus {

struct StepLoad {
  int64_t tokens = 0;
  int64_t kv_tokens = 0;  // (computed token, attended token) pairs
};
StepLoad load_of(const SchedulerOutput& plan);

// Not thread-safe.
class StepCostFit {
 public:
  void observe(const StepLoad& load, int64_t duration_ns);
  // False until some steps have been seen.
  bool fitted() const { return observed_ >= kFirstSteps; }
  const StepCost& cost() const { return cost_; }
  // Zero when nothing can be said: too few steps so far, or none nearly as large.
  int64_t predict_ns(const StepLoad& load) const;

 private:
  static constexpr int64_t kFirstSteps = 4;
  static constexpr size_t kBuckets = 20;  // by the magnitude of tokens
  // Sums of w * x_i * x_j and w * x_i * y with x = (1, tokens, kv tokens), w = 1 / max(y, prediction)^2.
  struct Moments {
    std::array<std::array<double, 3>, 3> xx{};
    std::array<double, 3> xy{};
    double yy = 0;
  };
  void fit();

  std::array<Moments, kBuckets> buckets_{};
  StepCost cost_;
  StepLoad largest_;
  int64_t observed_ = 0;
};

// The first steps after a load may take so long: pages are touched for the first time, nothing is measured.
inline constexpr int64_t kFirstStepsAllowedNs = 120'000'000'000;
// How long a later step may take: `timeout_ns` when that is not 0, else 5 times the prediction within 2 to
// 60 s; as long as the first ones where there is no prediction (0).
int64_t allowed_step_ns(int64_t predicted_ns, int64_t timeout_ns);

}  // namespace omnibus
