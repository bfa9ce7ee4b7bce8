// Sizes of a worker: from what was asked, the model and the memory, to numbers that fit, or a refusal that
// names the flag and the value that would.
#pragma once

#include <cstdint>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/worker/worker.h"
#include "omnibus/contract/step/memory_plan.h"

#include "model_instance.h"

namespace omnibus {

// max_model_len, rows of a step and of the head. INVALID_ARGUMENT names the flag.
StatusOr<InstanceSpec> resolve_sizes(const WorkerConfig& config);

struct KVBudget {
  int64_t memory_limit = 0;    // bytes; 0: unknown, nothing is refused
  int64_t kv_cache_bytes = 0;  // 0: the default
  int32_t max_num_seqs = 0;
  int32_t max_model_len = 0;
};
// Blocks for the budget, every arena, or RESOURCE_EXHAUSTED with the missing MiB.
StatusOr<MemoryPlan> plan_memory(const InstanceBytes& bytes, const KVBudget& budget);

}  // namespace omnibus
