// The shapes of POST /v1/chat/completions: chat.completion and chat.completion.chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/server/api/api_core.h"

#include "api/answer_format.h"

namespace omnibus {

struct ChatFormatOptions {
  std::string model, fingerprint;
  int32_t choices = 1;
  bool logprobs = false;
  bool tokens_as_token_ids = false;
  bool return_token_ids = false;
  bool include_reasoning = true;
  ReasoningField reasoning_field = ReasoningField::kBoth;
  bool include_usage = false;              // a last chunk with the usage; null before
  bool continuous_usage = false;           // usage so far on each chunk
  bool include_timings = false;            // how long what took, with the usage; streamed: a last chunk
  std::vector<TokenId> prompt_token_ids;   // when return_token_ids
  std::optional<int32_t> prompt_logprobs;  // alternatives per token of the prompt; absent: none of it
  std::string echo;                        // text in front of each answer
};

std::unique_ptr<AnswerFormat> make_chat_format(ChatFormatOptions options);

}  // namespace omnibus
