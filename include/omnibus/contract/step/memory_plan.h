// MemoryPlan: every byte a worker will take, by named arena. Computed by running the model on the `meta`
// device, before any weight is read (docs/design.md, P3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/contract/kv_spec/kv_cache_config.h"

namespace omnibus {

struct ArenaPlan {
  std::string name;  // "weights", "kv", "scratch", ...
  int64_t bytes = 0;
  std::string note;  // e.g. "210 tensors U4M, 1 tensor S8"
};

struct MemoryPlan {
  std::vector<ArenaPlan> arenas;
  KVCacheConfig kv;          // num_blocks filled in
  int64_t memory_limit = 0;  // what the machine or cgroup allows
  int64_t total() const {
    int64_t sum = 0;
    for (const auto& a : arenas) sum += a.bytes;
    return sum;
  }
};

}  // namespace omnibus
