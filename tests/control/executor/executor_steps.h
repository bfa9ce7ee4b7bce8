// Plans of one request, a row a step, for tests of executors.
#pragma once

#include "omnibus/contract/step/scheduler_output.h"

#include "fakes/fake_worker.h"

namespace omnibus {

// Steps 1, 2, ... of request 7: its prompt of three tokens, then a token each.
inline SchedulerOutput one_row(uint64_t seq) {
  SchedulerOutput plan;
  plan.id = {1, seq};
  ScheduledRow row;
  row.id = 7;
  row.n_tokens = seq == 1 ? 3 : 1;
  row.base_computed = seq == 1 ? 0 : static_cast<int32_t>(seq) + 1;
  row.new_blocks = {seq == 1 ? std::vector<BlockId>{0} : std::vector<BlockId>{}};
  row.samples = true;
  plan.rows.push_back(row);
  if (seq == 1) {
    Request request;
    request.id = 7;
    request.prompt_token_ids = {1, 2, 3};
    request.params = SamplingParams();
    plan.new_requests.push_back({request, {}});
  }
  return plan;
}

}  // namespace omnibus
