// As many connections as the system lets this process have.
#pragma once

#include <sys/resource.h>

namespace omnibus {

// Soft limits are often 1,024. What cannot be raised stays as it is.
inline void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace omnibus
