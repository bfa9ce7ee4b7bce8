// NativeFields: the body of POST /completion and /infill, validated field by field against one table. What
// needs the model (ids, context) is checked afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/server/http/json_body.h"

#include "api/field_rule.h"

namespace omnibus {

inline constexpr unsigned kOnNativeCompletion = 1, kOnInfill = 2;

// The bias of a token that is never drawn. Finite: sums of such must stay numbers.
inline constexpr float kNativeBan = -1e30F;

struct NativeFields {
  NativeFields() {
    sampling.temperature = 0.8F;
    sampling.top_k = 40;
    sampling.penalty_window = 64;
    sampling.top_p = 0.95F;
    sampling.min_p = 0.05F;
  }

  std::string model;  // empty: not given
  Json prompt;        // null: not given
  Json input_prefix, input_suffix, input_extra;

  SamplingParams sampling;  // max_tokens, logprobs and seed are filled in from the fields below
  Json logit_bias;          // null: none
  std::optional<int64_t> n_predict, max_completion_tokens, max_tokens;  // one thing: the first that is given
  std::optional<int64_t> seed;
  bool seed_drawn = false;                   // sampling.seed is neither the request's nor the server's
  std::optional<int32_t> n_probs, logprobs;  // likewise
  std::optional<int32_t> n_cmpl, n;          // likewise

  bool stream = false;
  bool return_tokens = false;
  bool timings_per_token = false;
  std::vector<std::string> response_fields;  // empty: all
};

std::span<const Field<NativeFields>> native_field_table();

}  // namespace omnibus
