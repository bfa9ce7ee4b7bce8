// What this machine can do right now, measured in the same process as the kernels: the only honest yardstick
// on a shared box (docs/cpu-kernels.md, Measuring).
#pragma once

#include "omnibus/compute/core/compute_pool.h"

namespace omnibus::bench {

struct Probe {
  double read_gb_s = 0;   // streaming read of 256 MiB by all threads
  double int8_gop_s = 0;  // register-only vpdpbusd on all threads; 0: this machine has none
};

// About a third of a second.
Probe probe(ComputePool& pool);

}  // namespace omnibus::bench
