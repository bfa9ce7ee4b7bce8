// Which CPUs this process may compute on.
#pragma once

#include <cstdint>
#include <vector>

namespace omnibus {

// One logical CPU (os index) for each physical core within the affinity mask, in topology order; never empty.
std::vector<int32_t> physical_cores();
// Cores' worth of time the cgroup's quota allows (v2 cpu.max, v1 cfs quota), 0: no limit.
double cgroup_cpu_quota();

}  // namespace omnibus
