#include "topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <hwloc.h>
#include <sched.h>

#include "omnibus/compute/core/compute_pool.h"

namespace omnibus {
namespace {

bool allowed(const cpu_set_t& mask, int32_t cpu) {
  return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &mask);
}

// quota / period of one cgroup folder; 0: no limit or no file.
double quota_of(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return 0;
    return std::atof(quota.c_str()) / period;
  }
  double v1_quota = 0;
  std::ifstream q(folder + "/cpu.cfs_quota_us");
  std::ifstream p(folder + "/cpu.cfs_period_us");
  if (q >> v1_quota && p >> period && v1_quota > 0 && period > 0) return v1_quota / period;
  return 0;
}

}  // namespace

std::vector<int32_t> physical_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
  std::vector<int32_t> cores;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) {
      const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
      for (int i = 0; i < n; ++i) {
        const hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
        for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
             cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
          if (!allowed(mask, cpu)) continue;
          cores.push_back(cpu);
          break;
        }
      }
    }
    hwloc_topology_destroy(topology);
  }
  if (cores.empty()) {  // no topology (a bare container): every allowed CPU counts as a core
    for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (allowed(mask, cpu)) cores.push_back(cpu);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

double cgroup_cpu_quota() {
  double least = std::numeric_limits<double>::infinity();
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "id:controllers:path"
    std::istringstream fields(line);
    std::string id;
    std::string controllers;
    std::string path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      root += "/cpu";
    }
    // A limit on any ancestor holds; inside a container only the root may be visible.
    for (;;) {
      if (const double quota = quota_of(root + path); quota > 0) least = std::min(least, quota);
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return std::isinf(least) ? 0 : least;
}

int32_t available_cores() {
  const auto cores = static_cast<int32_t>(physical_cores().size());
  const double quota = cgroup_cpu_quota();
  if (quota <= 0) return cores;
  return std::clamp(static_cast<int32_t>(quota), 1, cores);
}

}  // namespace omnibus
