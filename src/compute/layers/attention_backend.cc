#include "omnibus/compute/layers/attention_backend.h"

#include <fmt/format.h>

#include "omnibus/base/common/check.h"

namespace omnibus {

AttentionBackend::AttentionBackend(int32_t window, int32_t max_sequences) : window_(window) {
  sequences_.reserve(static_cast<size_t>(max_sequences));
}

StatusOr<AttentionBackend> AttentionBackend::create(const KVGroupSpec& group, int32_t max_sequences) {
  switch (group.kind) {
    case KVGroupKind::kFull:
      return AttentionBackend(0, max_sequences);
    case KVGroupKind::kSlidingWindow:
      return AttentionBackend(group.window, max_sequences);
    default:
      return absl::UnimplementedError(
          fmt::format("no attention backend for KV groups of kind {}", static_cast<int>(group.kind)));
  }
}

AttentionMetadata AttentionBackend::plan(std::span<const AttentionSequence> sequences) {
  sequences_.assign(sequences.begin(), sequences.end());
  AttentionMetadata metadata;
  metadata.sequences = sequences_.data();
  metadata.n_sequences = static_cast<int32_t>(sequences_.size());
  metadata.window = window_;
  for (const AttentionSequence& s : sequences_) {
    OMNIBUS_DCHECK(s.first_row == metadata.m, "sequences out of row order");
    metadata.m += s.n_query;
  }
  return metadata;
}

}  // namespace omnibus
