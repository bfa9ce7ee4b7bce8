// What this machine can do right now, measured in the same process as the kernels: the only honest yardstick on a
// shared box (docs/cpu-kernels.md, protocol).
#pragma once

#include "omnibus/compute/core/compute_pool.h"

namespace omnibus::bench {

struct Probe {
  double read_gb_s = 0;  // streaming read of 256 MiB by all threads
  double f32_gflops = 0; // register-only fma of the compiler's baseline vectors, a clock gauge
};

Probe probe(ComputePool& pool);

}  // namespace omnibus::bench
