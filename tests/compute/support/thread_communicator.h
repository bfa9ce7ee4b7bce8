// Communicators of ranks that are threads of one process: sums in the fixed tree (docs/design.md,
// Numerics). For tests of parallel layers; all_reduce, barrier and abort, as layers use them.
#pragma once

#include <memory>
#include <vector>

#include "omnibus/compute/comm/communicator.h"

namespace omnibus {

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int32_t ranks);

}  // namespace omnibus
