// KVCacheConfig: how the KV cache is cut into groups and blocks. A leaf shared by both planes: the worker
// computes it from the model and the memory plan, the scheduler allocates by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace omnibus {

// Tokens in one KV block; fixed, because the CPU kernels' block layout depends on it (docs/cpu-kernels.md).
inline constexpr int32_t kTokensPerBlock = 16;

enum class KVGroupKind { kFull, kSlidingWindow, kChunked, kMla, kRecurrent };

// Layers that share one block table. One table per (request, group).
struct KVGroupSpec {
  KVGroupKind kind = KVGroupKind::kFull;
  std::vector<int32_t> layers;  // absolute layer indices
  int32_t tokens_per_block = kTokensPerBlock;
  int64_t bytes_per_block = 0;  // as the backend says, all layers of the group together, scales included
  int32_t window = 0;           // kSlidingWindow, kChunked: tokens visible
  int32_t chunk_alignment = 1;  // prefill is cut only at absolute multiples of this
  int32_t snapshot_stride = 0;  // kRecurrent: tokens between snapshots
  int32_t speculative_state_slots = 0;  // kRecurrent: extra states for drafts
};

struct KVCacheConfig {
  std::vector<KVGroupSpec> groups;  // >= 1
  int32_t num_blocks = 0;           // blocks per group's pool; groups of one block size share one pool
};

}  // namespace omnibus
