// What a client may ask of one sequence. Values only, already validated: bounds are checked at the doors
// against one field table (server/openai), so the core never re-checks a range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/base/common/ids.h"

namespace omnibus {

struct SamplingParams {
  // Sampling. temperature 0 = greedy (ties go to the lowest id).
  float temperature = 1.0F;
  float top_p = 1.0F;  // 0: keep the top token only
  int32_t top_k = 0;   // <= 0: off
  float min_p = 0.0F;
  float repetition_penalty = 1.0F;  // over prompt and output
  float presence_penalty = 0.0F;    // over output only
  float frequency_penalty = 0.0F;   // over output only
  // >= 0: all three penalties are over the last so many tokens instead, be they of the prompt or the output
  // (llama.cpp's repeat_last_n).
  int32_t penalty_window = -1;
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<TokenId> allowed_token_ids;  // empty: all
  // Token sequences that the output may not contain: the last id of each is banned where the ids before it
  // have just been drawn. None is empty.
  std::vector<std::vector<TokenId>> bad_sequences;
  uint64_t seed = 0;  // always set: drawn at admission when the client gave none

  // What to report. nullopt: no logprobs; 0: the sampled token only; k: also the top k.
  std::optional<int32_t> logprobs;
  std::optional<int32_t> prompt_logprobs;
  std::vector<TokenId> logprob_token_ids;  // reported at each position beside the top k; needs logprobs

  // When to stop. max_tokens is already clamped to the room in the context.
  int32_t max_tokens = 16;
  int32_t min_tokens = 0;               // EOS, stop ids and stop strings are suppressed until then
  std::vector<std::string> stop;        // judged by OutputProcessor, on text
  std::vector<TokenId> stop_token_ids;  // judged by the core
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  bool stop_in_reasoning = false;  // stop strings end the reasoning, too; else they count in the answer only
  bool skip_special_tokens = true;
};

// What a model's authors recommend; a request's own values go before it.
struct SamplingDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int32_t> top_k;

  void apply_to(SamplingParams& params) const {
    params.temperature = temperature.value_or(params.temperature);
    params.top_p = top_p.value_or(params.top_p);
    params.min_p = min_p.value_or(params.min_p);
    params.repetition_penalty = repetition_penalty.value_or(params.repetition_penalty);
    params.top_k = top_k.value_or(params.top_k);
  }
};

// Embeddings and scores; the shape exists so that Request never changes, admission refuses it until a model
// has a PoolingHead.
struct PoolingParams {
  bool normalize = true;
  std::optional<int32_t> dimensions;
};

}  // namespace omnibus
