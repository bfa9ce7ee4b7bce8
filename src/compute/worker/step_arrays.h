// StepArrays: the flat inputs of one forward pass, built from the mirror. Room for the largest step is taken
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/layers/attention_backend.h"
#include "omnibus/compute/layers/forward_batch.h"
#include "omnibus/contract/step/scheduler_output.h"

#include "input_batch.h"

namespace omnibus {

class StepArrays {
 public:
  static StatusOr<StepArrays> create(std::span<const KVGroupSpec> groups, int32_t max_rows);

  // Valid until the next build; points into the block tables of `states`.
  ForwardBatch build(std::span<const ScheduledRow> rows, std::span<RequestState* const> states);
  // First batch row of plan row i.
  int32_t first_row(size_t i) const { return first_rows_[i]; }

 private:
  std::vector<AttentionBackend> backends_;
  std::vector<KVGroupBatch> groups_;
  std::vector<std::vector<int64_t>> slots_;
  std::vector<int32_t> token_ids_, positions_, first_rows_;
  std::vector<AttentionSequence> sequences_;
};

}  // namespace omnibus
