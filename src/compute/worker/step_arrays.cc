#include "step_arrays.h"

namespace omnibus {

StatusOr<StepArrays> StepArrays::create(std::span<const KVGroupSpec> groups, int32_t max_rows) {
  StepArrays arrays;
  const auto room = static_cast<size_t>(max_rows);
  for (const KVGroupSpec& group : groups) {
    OMNIBUS_ASSIGN_OR_RETURN(AttentionBackend backend, AttentionBackend::create(group, max_rows));
    arrays.backends_.push_back(std::move(backend));
    arrays.slots_.emplace_back().reserve(room);
  }
  arrays.groups_.resize(groups.size());
  for (auto* v : {&arrays.token_ids_, &arrays.positions_, &arrays.first_rows_}) v->reserve(room);
  arrays.sequences_.reserve(room);
  return arrays;
}

ForwardBatch StepArrays::build(std::span<const ScheduledRow> rows, std::span<RequestState* const> states) {
  token_ids_.clear();
  positions_.clear();
  first_rows_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const ScheduledRow& row = rows[i];
    first_rows_.push_back(static_cast<int32_t>(token_ids_.size()));
    const auto known = static_cast<size_t>(row.n_tokens) - row.drafts.size();
    const auto first = states[i]->tokens.begin() + row.base_computed;
    token_ids_.insert(token_ids_.end(), first, first + static_cast<std::ptrdiff_t>(known));
    token_ids_.insert(token_ids_.end(), row.drafts.begin(), row.drafts.end());
    for (int32_t j = 0; j < row.n_tokens; ++j) positions_.push_back(row.base_computed + j);
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    slots_[g].clear();
    sequences_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const ScheduledRow& row = rows[i];
      const std::vector<BlockId>& table = states[i]->tables[g];
      for (int32_t j = 0; j < row.n_tokens; ++j) {
        const int32_t position = row.base_computed + j;
        slots_[g].push_back(int64_t{table[static_cast<size_t>(position / kTokensPerBlock)]} *
                                kTokensPerBlock +
                            position % kTokensPerBlock);
      }
      AttentionSequence sequence;
      sequence.first_row = first_rows_[i];
      sequence.n_query = row.n_tokens;
      sequence.context = row.base_computed + row.n_tokens;
      sequence.block_table = table.data();
      sequences_.push_back(sequence);
    }
    groups_[g].backend = &backends_[g];
    groups_[g].metadata = backends_[g].plan(sequences_);
    groups_[g].slots = slots_[g].data();
  }
  ForwardBatch batch;
  batch.token_ids = token_ids_;
  batch.positions = positions_;
  batch.groups = groups_;
  return batch;
}

}  // namespace omnibus
