#include "random_stream.h"

#include <cmath>
#include <numbers>

#include "omnibus/base/common/rng.h"

namespace omnibus::client {

double RandomStream::uniform() { return philox_uniform(seed_, stream_, draws_++); }

int64_t RandomStream::below(int64_t limit) {
  return static_cast<int64_t>(uniform() * static_cast<double>(limit));
}

// Box and Muller, 1958.
double RandomStream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double RandomStream::gamma(double shape) {
  if (shape < 1) return gamma(shape + 1) * std::pow(1 - uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double RandomStream::log_normal(double mu, double sigma) { return std::exp(mu + sigma * normal()); }

}  // namespace omnibus::client
