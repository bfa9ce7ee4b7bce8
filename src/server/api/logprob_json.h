// Log-probabilities as OpenAI's two APIs show them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/contract/request/request_output.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// The text of a token on its own: bytes that are no whole characters become U+FFFD. With `as_id`:
// "token_id:N".
std::string logprob_token_text(TokenId id, const std::string& bytes, bool as_id);

// chat: [{token, logprob, bytes, top_logprobs: [...]}]
Json chat_logprobs(const std::vector<PositionLogprobs>& positions, bool as_ids);

// vLLM's form for a prompt: one value per token, null for the first, else a map id -> {logprob, rank,
// decoded_token} of the token itself and the `top` likeliest.
Json prompt_logprobs_json(const std::vector<PositionLogprobs>& positions, int32_t top);

// Legacy completions: {tokens, token_logprobs, top_logprobs, text_offset}, gathered over the updates of one
// choice. Offsets count characters from the start of the (echoed prompt and) text.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(bool as_ids) : as_ids_(as_ids) {}

  // Entry for a token; a position without a token before it (the first of a prompt) has null values.
  void add(const PositionLogprobs& position, bool has_value);
  // A token that stands in front of the text and adds nothing to it (BOS).
  void add_outside_text(const PositionLogprobs& position);
  // What was added since the last call.
  Json take();

 private:
  void push(const PositionLogprobs& position, bool has_value, int64_t offset);

  bool as_ids_;
  int64_t characters_ = 0;  // begun so far
  std::vector<PositionLogprobs> positions_;
  std::vector<bool> has_value_;
  std::vector<int64_t> offsets_;
};

}  // namespace omnibus
