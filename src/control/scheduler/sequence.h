// One request as the scheduler keeps it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "omnibus/contract/request/request.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/control/scheduler/scheduler.h"

namespace omnibus {

inline constexpr uint64_t kNotAdmitted = std::numeric_limits<uint64_t>::max();

struct Scheduler::Sequence {
  explicit Sequence(Request r) : request(std::move(r)) {}

  Request request;
  RequestStatus status = RequestStatus::kWaiting;
  std::vector<TokenId> output;
  std::vector<TokenId> drafts;                   // proposed by the worker for after the last output token
  std::vector<SampledLogprobs> prompt_logprobs;  // of prompt positions 1, 2, ...
  int32_t planned = 0;                   // tokens whose KV is stored or being computed by steps in flight
  int32_t prefill_end = 0;               // tokens known at admission; past it the request decodes
  uint64_t admitted_seq = kNotAdmitted;  // rows of earlier steps are of a former life
  MonotonicNs first_scheduled_ns = 0;
  MonotonicNs first_token_ns = 0;
  int32_t preemptions = 0;

  int32_t prompt_size() const { return static_cast<int32_t>(request.prompt_token_ids.size()); }
  int32_t known() const { return prompt_size() + static_cast<int32_t>(output.size()); }
  // Known tokens that no step has taken yet; 0 while the next token is being sampled.
  int32_t pending() const { return known() - planned; }
  bool decoding() const { return planned >= prefill_end; }
  bool on_worker() const { return admitted_seq != kNotAdmitted; }
};

}  // namespace omnibus
