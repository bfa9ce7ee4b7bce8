// Sampler: one token per row from HeadOutput. Deterministic in (seed, position, draw): Philox4x32-10;
// independent of the batch. No full sort: a threshold is found by histograms over the bits of the logits.
//
// Order (vLLM's): penalties, bias and mask (in the head), then temperature, min-p, top-k, top-p. Each filter
// sees only what the one before left, and top-p takes shares of what is left. Exactly:
//   min-p  keeps a token when its probability >= min_p * (probability of the best);
//   top-k  keeps the k best; equal logits go to the lower ids;
//   top-p  keeps a token when the probabilities of those above it sum to less than top_p; always the best
//   one.
// Then one uniform number, philox_uniform(seed, position, 0), walks the kept tokens in ascending id.
// temperature 0, top_k 1 and top_p 0 are greedy; ties go to the lowest id.
#pragma once

#include <cstdint>
#include <span>
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

// Whether some penalty is on.
bool has_penalty(const SamplingParams& params);

// Tokens of a sequence as penalties count them: all of it, those of a window as output. `tokens`: prompt,
// then output.
std::vector<TokenCount> penalty_counts(const SamplingParams& params, std::span<const TokenId> tokens,
                                       size_t prompt_length);

// Appends to `banned` what bad_sequences forbid next: the last id of each sequence whose other ids are the
// end of `output` (the tokens drawn so far, the prompt not among them).
void ban_bad_sequences(const SamplingParams& params, std::span<const TokenId> output,
                       std::vector<int32_t>& banned);

// log-softmax of the raw logits for `token`, and for the best raw_k together with `also` (ids within the
// vocabulary), descending; clamped to >= -9999.
struct DrawnLogprobs {
  TokenLogprob sampled;
  std::vector<TokenLogprob> top;
};
DrawnLogprobs logprobs_of(const HeadOutput& head, TokenId token, std::span<const TokenId> also = {});

// Place of `token` in the raw row, 1 = likeliest; equal logits go by id. Needs raw_k >= 0.
int32_t rank_of(const HeadOutput& head, TokenId token);

}  // namespace omnibus
