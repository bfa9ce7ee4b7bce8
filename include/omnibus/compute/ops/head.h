// head: logits of the rows that need them, and what sampling wants of each row: the best candidates, the
// log-sum-exp, and all logits where a filter asks for them. Penalties, bias and mask act here, on the
// vocabulary shard.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "omnibus/compute/ops/activations.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

struct Candidate {
  float logit = 0;
  int32_t id = -1;
};

// How often a token occurred in this sequence; for penalties.
struct TokenCount {
  int32_t id = 0;
  int32_t in_prompt = 0;
  int32_t in_output = 0;
};

// What to do with one row. Order: repetition penalty (divide positive, multiply negative logits of ids seen
// in prompt or output), frequency and presence penalty (ids seen in output), bias, mask.
struct HeadRequest {
  int32_t k = 1;       // best adjusted candidates wanted, >= 1
  int32_t raw_k = -1;  // >= 0: logprobs are wanted: fill raw_lse, raw_candidates[raw_k], raw
  bool full = false;   // all adjusted logits are wanted
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::span<const TokenCount> counts;
  std::span<const std::pair<int32_t, float>> bias;
  std::span<const uint32_t> allowed_mask;  // bit per id (word id / 32, bit id % 32); empty: all allowed
  std::span<const int32_t> banned;         // ids that may not be drawn (EOS before min_tokens)
};

struct HeadOutput {
  std::vector<Candidate> candidates;  // adjusted, descending, ties to the lower id; masked ids never appear
  std::span<const float> full;        // [vocab] adjusted (masked: -inf), valid until the next head() call
  std::vector<Candidate> raw_candidates;
  std::span<const float> raw;  // [vocab], valid until the next head() call
  double raw_lse = 0;          // log-sum-exp of the raw logits
  bool finite = true;          // false: NaN or Inf in the row; the request fails alone
};

struct HeadParams {
  const LinearWeight* weight = nullptr;  // [vocab, hidden]
  const Activations* x = nullptr;        // [rows, hidden]
  float* logits = nullptr;               // scratch [rows, vocab]
  float* raw_logits = nullptr;  // scratch [rows, vocab]: copies of rows that are both adjusted and reported
  std::span<const HeadRequest> requests;  // [rows]
  std::span<HeadOutput> outputs;          // [rows]
};
void head(const OpContext& ctx, const HeadParams& params);

// The part after the matmul, for sources of logits other than a weight (tests, the replay worker): `logits`
// [vocab] is adjusted in place, `raw` [vocab] receives a copy where needed.
void select_candidates(std::span<float> logits, std::span<float> raw, const HeadRequest& request,
                       HeadOutput& output);

}  // namespace omnibus
