// GenerationFields: the body of POST /v1/chat/completions and /v1/completions, validated field by field
// against one table. What needs the model (ids, context) is checked afterwards, in generation_params.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/contract/request/sampling_params.h"

#include "api/field_rule.h"
#include "api/prompt.h"

namespace omnibus {

// Routes that a field belongs to, as a set of bits.
inline constexpr unsigned kOnChat = 1, kOnCompletions = 2, kOnTokenize = 4, kOnDetokenize = 8;

struct GenerationFields {
  std::string model;  // empty: not given
  Json messages;      // chat: array; null: not given
  Json prompt;        // completions; null: not given

  SamplingParams sampling;  // max_tokens, logprobs, seed are filled in from the fields below
  std::optional<int64_t> max_tokens, max_completion_tokens;
  std::optional<int64_t> seed;
  int32_t n = 1;
  std::optional<int64_t> best_of;
  std::optional<float> repetition_penalty, repeat_penalty;  // two names of one thing
  std::vector<std::string> bad_words;
  int32_t priority = 0;

  bool stream = false;
  std::optional<bool> include_usage;  // stream_options was given
  bool continuous_usage = false;
  bool include_timings = false;

  bool logprobs = false;                 // chat
  std::optional<int32_t> top_logprobs;   // chat
  std::optional<int32_t> logprob_count;  // completions
  std::optional<int32_t> prompt_logprobs;
  bool echo = false;
  bool include_reasoning = true;
  bool return_token_ids = false;
  bool tokens_as_token_ids = false;

  std::optional<bool> add_special_tokens;
  std::optional<int64_t> truncate_prompt_tokens;
  std::optional<TruncationSide> truncation_side;
  std::optional<bool> add_generation_prompt;
  std::optional<bool> continue_final_message;
  Json documents;  // array or null
  std::string chat_template;
  Json chat_template_kwargs;  // object or null
  std::string reasoning_effort;
  std::string cache_salt;
};

std::span<const Field<GenerationFields>> generation_field_table();

}  // namespace omnibus
