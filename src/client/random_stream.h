// Random numbers of one purpose: a pure function of (seed, stream), the same on every machine.
#pragma once

#include <cstdint>

namespace omnibus::client {

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  double uniform();              // [0, 1)
  int64_t below(int64_t limit);  // [0, limit)
  double normal();               // mean 0, deviation 1
  double gamma(double shape);    // scale 1
  double log_normal(double mu, double sigma);

 private:
  uint64_t seed_, stream_;
  uint32_t draws_ = 0;
};

}  // namespace omnibus::client
