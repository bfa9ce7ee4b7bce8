// What one step hands to a model: ids, positions and, per KV group, where keys go and what attention sees.
// Arrays belong to the caller and outlive forward().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omnibus/compute/comm/communicator.h"
#include "omnibus/compute/layers/attention_backend.h"
#include "omnibus/compute/ops/attention.h"
#include "omnibus/compute/ops/kv_cache_view.h"

namespace omnibus {

// One KV group of the step.
struct KVGroupBatch {
  const AttentionBackend* backend = nullptr;
  AttentionMetadata metadata;
  const int64_t* slots = nullptr;  // [rows]: where each token's K and V go; < 0: nowhere
};

struct ForwardBatch {
  std::span<const int32_t> token_ids;    // [rows]
  std::span<const int32_t> positions;    // [rows]
  std::span<const KVGroupBatch> groups;  // by KV group
  Communicator* tp = nullptr;            // of the tensor-parallel group; null: a group of one
  CommCtx comm;
  int32_t rows() const { return static_cast<int32_t>(token_ids.size()); }
};

// The paged cache of each layer of this stage, in layer order.
struct KVCaches {
  std::vector<KVCacheView> layers;
};

// What stands between pipeline stages: the residual stream after its add.
struct IntermediateTensors {
  float* residual = nullptr;  // [rows, width]
  int32_t rows = 0, width = 0;
};

}  // namespace omnibus
