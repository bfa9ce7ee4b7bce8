// Sampler: one token per row from HeadOutput. Deterministic in (seed, position, draw): Philox4x32-10;
// independent of the batch. Filters in vLLM's order: temperature, min-p, top-k, top-p. Greedy ties go to the
// lowest id. No full sort: top-p without top-k finds its threshold by a histogram over exp(logit).
#pragma once

#include <cstdint>
#include <vector>

#include "omnibus/compute/ops/head.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/request/sampling_params.h"

namespace omnibus {

// What the head must deliver for these parameters (k, raw_k, full; spans are left empty).
HeadRequest head_request_for(const SamplingParams& params);

// position: index of the drawn token in the sequence (prompt + output), so a recomputed request draws the
// same. INTERNAL when the row has no candidate (all masked).
StatusOr<TokenId> draw(const HeadOutput& head, const SamplingParams& params, int64_t position);

// log-softmax of the raw logits for `token` and the best raw_k; clamped to >= -9999.
struct DrawnLogprobs {
  TokenLogprob sampled;
  std::vector<TokenLogprob> top;
};
DrawnLogprobs logprobs_of(const HeadOutput& head, TokenId token);

}  // namespace omnibus
