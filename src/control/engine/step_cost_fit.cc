#include "step_cost_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace omnibus {
namespace {

constexpr double kForget = 0.95;       // per step of the same bucket
constexpr double kOutlier = 8;         // so many times longer or shorter than predicted is taken for no more
constexpr int64_t kExtrapolation = 4;  // a prediction holds for steps up to so many times the largest seen
constexpr double kAllowed = 5;
constexpr int64_t kLeastAllowedNs = 2'000'000'000;
constexpr int64_t kMostAllowedNs = 60'000'000'000;

using Matrix = std::array<std::array<double, 3>, 3>;
using Vector = std::array<double, 3>;

// Gaussian elimination over the coefficients of `mask`; nullopt when they cannot be told apart.
std::optional<Vector> solve(Matrix a, Vector b, unsigned mask) {
  std::array<size_t, 3> used{};
  size_t n = 0;
  for (size_t i = 0; i < 3; ++i)
    if ((mask >> i & 1U) != 0) used[n++] = i;
  for (size_t k = 0; k < n; ++k) {
    const size_t p = used[k];
    if (a[p][p] < 1e-9) return std::nullopt;
    for (size_t m = k + 1; m < n; ++m) {
      const size_t q = used[m];
      const double factor = a[q][p] / a[p][p];
      for (size_t l = k; l < n; ++l) a[q][used[l]] -= factor * a[p][used[l]];
      b[q] -= factor * b[p];
    }
  }
  Vector x{};
  for (size_t k = n; k-- > 0;) {
    const size_t p = used[k];
    double sum = b[p];
    for (size_t m = k + 1; m < n; ++m) sum -= a[p][used[m]] * x[used[m]];
    x[p] = sum / a[p][p];
  }
  return x;
}

double error_of(const Matrix& a, const Vector& b, double yy, const Vector& x) {
  double error = yy;
  for (size_t i = 0; i < 3; ++i) {
    error -= 2 * b[i] * x[i];
    for (size_t j = 0; j < 3; ++j) error += a[i][j] * x[i] * x[j];
  }
  return error;
}

// The best non-negative solution: with three coefficients every set of those that are not zero can be tried.
Vector solve_non_negative(const Matrix& a, const Vector& b, double yy) {
  Vector best{};
  double least = yy;
  for (unsigned mask = 1; mask < 8; ++mask) {
    const auto x = solve(a, b, mask);
    if (!x || *std::min_element(x->begin(), x->end()) < 0) continue;
    const double error = error_of(a, b, yy, *x);
    if (error >= least) continue;
    least = error;
    best = *x;
  }
  return best;
}

}  // namespace

StepLoad load_of(const SchedulerOutput& plan) {
  StepLoad load;
  for (const ScheduledRow& row : plan.rows) {
    const int64_t n = row.n_tokens;
    load.tokens += n;
    load.kv_tokens += n * row.base_computed + n * (n + 1) / 2;
  }
  return load;
}

void StepCostFit::observe(const StepLoad& load, int64_t duration_ns) {
  double y = static_cast<double>(std::max<int64_t>(duration_ns, 1));
  double scale = y;
  if (const auto predicted = static_cast<double>(predict_ns(load)); predicted > 0) {
    // By the larger of the two: neither a step that was far too short nor one that was far too long may
    // outweigh all the others.
    scale = std::max(y, predicted);
    y = std::clamp(y, predicted / kOutlier, predicted * kOutlier);
  }
  const Vector x = {1, static_cast<double>(load.tokens), static_cast<double>(load.kv_tokens)};
  const auto tokens = static_cast<uint64_t>(std::max<int64_t>(load.tokens, 1));
  Moments& m = buckets_[std::min<size_t>(static_cast<size_t>(std::bit_width(tokens)) - 1, kBuckets - 1)];
  const double w = 1 / (scale * scale);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) m.xx[i][j] = m.xx[i][j] * kForget + w * x[i] * x[j];
    m.xy[i] = m.xy[i] * kForget + w * x[i] * y;
  }
  m.yy = m.yy * kForget + w * y * y;
  ++observed_;
  largest_.tokens = std::max(largest_.tokens, load.tokens);
  largest_.kv_tokens = std::max(largest_.kv_tokens, load.kv_tokens);
  fit();
}

void StepCostFit::fit() {
  Moments sum;
  for (const Moments& m : buckets_) {
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) sum.xx[i][j] += m.xx[i][j];
      sum.xy[i] += m.xy[i];
    }
    sum.yy += m.yy;
  }
  // Scaled to a unit diagonal: the three differ by many orders of magnitude.
  Vector scale;
  for (size_t i = 0; i < 3; ++i) scale[i] = sum.xx[i][i] > 0 ? 1 / std::sqrt(sum.xx[i][i]) : 0;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) sum.xx[i][j] *= scale[i] * scale[j];
    sum.xy[i] *= scale[i];
  }
  const Vector x = solve_non_negative(sum.xx, sum.xy, sum.yy);
  cost_ = {x[0] * scale[0], x[1] * scale[1], x[2] * scale[2]};
}

int64_t StepCostFit::predict_ns(const StepLoad& load) const {
  if (!fitted() || load.tokens > kExtrapolation * largest_.tokens ||
      load.kv_tokens > kExtrapolation * largest_.kv_tokens)
    return 0;
  return static_cast<int64_t>(cost_.predict_ns(load.tokens, load.kv_tokens));
}

int64_t allowed_step_ns(int64_t predicted_ns, int64_t timeout_ns) {
  if (timeout_ns > 0) return timeout_ns;
  if (predicted_ns <= 0) return kFirstStepsAllowedNs;
  const double allowed = kAllowed * static_cast<double>(predicted_ns);
  return static_cast<int64_t>(
      std::clamp(allowed, static_cast<double>(kLeastAllowedNs), static_cast<double>(kMostAllowedNs)));
}

}  // namespace omnibus
