// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace omnibus {

// min(cgroup limit of this process or of any parent, v2 or v1; MemTotal), bytes. `root` stands in front of
// /proc and /sys, for tests. 0 when nothing can be read.
int64_t memory_limit(const std::string& root = "");

}  // namespace omnibus
