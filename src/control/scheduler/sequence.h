// One request as the scheduler keeps it.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "omnibus/contract/request/request.h"
#include "omnibus/contract/step/model_runner_output.h"
#include "omnibus/control/scheduler/scheduler.h"

namespace omnibus {

inline constexpr uint64_t kNotAdmitted = std::numeric_limits<uint64_t>::max();

// A request's place in the policy's order: the lower goes first, and what runs last in it makes room for the
// others. It is kept through preemptions.
struct Place {
  bool in_turn = true;  // false: it was passed over too often and goes before all others
  int32_t priority = 0;
  uint64_t arrival = 0;
  auto operator<=>(const Place&) const = default;
};

struct Scheduler::Sequence {
  explicit Sequence(Request r)
      : request(std::move(r)), tokens(request.prompt_token_ids), keys(std::move(request.prefix_keys)) {}

  Request request;
  RequestStatus status = RequestStatus::kWaiting;
  Place place;
  size_t tenant = 0;                             // in FairShares
  std::vector<TokenId> tokens;                   // prompt and output
  std::vector<Digest256> keys;                   // of the first stretches of them (block_key.h)
  std::vector<TokenId> drafts;                   // proposed by the worker for after the last token
  std::vector<SampledLogprobs> prompt_logprobs;  // of prompt positions 1, 2, ...
  int32_t computed = 0;                          // tokens whose KV is stored
  int32_t published = 0;                         // of these, whole stretches in the prefix cache
  int32_t planned = 0;                           // `computed` and what steps in flight compute
  int64_t retry_at = 0;                          // KVCacheManager::gains() before which it cannot be admitted
  int64_t slots = 0;                             // tokens that its blocks can hold
  int32_t sampling = 0;                          // rows in flight that sample
  FromStep last_sample;                          // the newest of them
  bool one_token = true;                         // it cannot give more
  int32_t prefill_end = 0;                       // tokens known at admission; past it the request decodes
  int32_t charged = 0;                           // tokens that its tenant was charged for
  int32_t passed_over = 0;                       // rounds
  uint64_t admitted_seq = kNotAdmitted;          // rows of earlier steps are of a former life
  MonotonicNs first_scheduled_ns = 0;
  MonotonicNs first_token_ns = 0;
  int32_t preemptions = 0;
  int32_t cached_tokens = 0;  // of the prompt, found at the first admission

  int32_t prompt_size() const { return static_cast<int32_t>(request.prompt_token_ids.size()); }
  int32_t output_size() const { return known() - prompt_size(); }
  std::span<const TokenId> output() const {
    return std::span(tokens).subspan(request.prompt_token_ids.size());
  }
  int32_t known() const { return static_cast<int32_t>(tokens.size()); }
  // Tokens that no step has taken yet, of the known ones and those being sampled, one by each row.
  int32_t pending() const { return known() + sampling - planned; }
  bool decoding() const { return planned >= prefill_end; }
  bool on_worker() const { return admitted_seq != kNotAdmitted; }
};

}  // namespace omnibus
