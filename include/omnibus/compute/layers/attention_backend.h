// AttentionBackend: attention of one KV group. plan() once per step on the host, forward() once per layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/ops/attention.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"

namespace omnibus {

// Full attention and sliding windows over the paged cache.
class AttentionBackend {
 public:
  // UNIMPLEMENTED names a group kind without a backend. Room for max_sequences is taken here.
  static StatusOr<AttentionBackend> create(const KVGroupSpec& group, int32_t max_sequences);

  // Sequences in row order. The metadata, and the block tables it points to, are valid until the next plan().
  AttentionMetadata plan(std::span<const AttentionSequence> sequences);
  void forward(const OpContext& ctx, const AttentionParams& params) const { attention(ctx, params); }

 private:
  AttentionBackend(int32_t window, int32_t max_sequences);

  int32_t window_;
  std::vector<AttentionSequence> sequences_;
};

}  // namespace omnibus
