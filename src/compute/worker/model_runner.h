// ModelRunner: one step: inputs, forward pass, head for the rows that need it, tokens and logprobs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus/contract/step/model_runner_output.h"

#include "input_batch.h"
#include "model_instance.h"
#include "step_arrays.h"

namespace omnibus {

class ModelRunner {
 public:
  static StatusOr<ModelRunner> create(ModelInstance& instance, std::span<const KVGroupSpec> groups);

  // Runs the plan's rows on `states` (from InputBatch::apply) and moves them on.
  StatusOr<ModelRunnerOutput> run(const SchedulerOutput& plan, std::span<RequestState* const> states,
                                  Communicator* tp);
  // A forward pass and a head of one token, its KV in block 0: INTERNAL when its logits are not finite.
  Status warm_up(Communicator* tp);

 private:
  // One row of logits: the token at `position` of plan row `row`.
  struct HeadJob {
    size_t row = 0;
    int32_t batch_row = 0;
    int32_t position = 0;    // index of the token that the logits are about
    int32_t draft = 0;       // sampled rows: drafts accepted before this one
    bool is_prompt = false;  // logprobs of a known prompt token
  };

  explicit ModelRunner(ModelInstance& instance, StepArrays arrays)
      : instance_(&instance), arrays_(std::move(arrays)) {}

  StatusOr<ModelRunnerOutput> run_without_failed(const SchedulerOutput& plan,
                                                 std::span<RequestState* const> states, Communicator* tp);
  void collect_jobs(const SchedulerOutput& plan, std::span<RequestState* const> states);
  void fill_banned(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                   std::vector<int32_t>& banned) const;
  // Counts of all tokens, with the drafts before the row.
  void fill_counts(const HeadJob& job, const ScheduledRow& row, const RequestState& state, size_t at);
  void fill_request(const HeadJob& job, const ScheduledRow& row, const RequestState& state, size_t at);
  Status run_jobs(const SchedulerOutput& plan, std::span<RequestState* const> states,
                  std::vector<RowOutput>& outputs);
  void finish_job(const HeadJob& job, const ScheduledRow& row, const RequestState& state,
                  const HeadOutput& head, RowOutput& out);

  ModelInstance* instance_;
  StepArrays arrays_;
  std::vector<HeadJob> jobs_;
  std::vector<int32_t> job_rows_;
  std::vector<HeadRequest> requests_;
  std::vector<HeadOutput> heads_;
  // Counts of a window, or with the drafts before a row, by job of the turn.
  std::vector<std::vector<TokenCount>> row_counts_;
  std::vector<std::vector<int32_t>> banned_;  // ids that a row may not draw, by job of the turn
};

}  // namespace omnibus
