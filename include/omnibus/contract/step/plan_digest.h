// PlanDigest: 64-bit hash of a SchedulerOutput together with the worker's mirror state. Every rank computes
// it in prepare(); a step runs only if all agree (docs/design.md, P1).
#pragma once

#include <cstdint>

#include "omnibus/contract/step/scheduler_output.h"

namespace omnibus {

using PlanDigest = uint64_t;

// Chains `previous` (digest of the mirror before the step) with everything in the plan that decides what is
// computed. Independent of pointer values, padding and container capacity.
PlanDigest digest_plan(PlanDigest previous, const SchedulerOutput& plan);

}  // namespace omnibus
