// The shape of POST /v1/completions: text_completion, whole and streamed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer_format.h"
#include "api/prompt.h"

namespace omnibus {

struct CompletionFormatOptions {
  std::string model, fingerprint;
  std::vector<TextPrompt> prompts;  // choice i belongs to prompt i / choices_per_prompt
  int32_t choices_per_prompt = 1;
  bool echo = false;
  // Alternatives per token of the answer (with echo: and of the prompt), and of the prompt by itself.
  std::optional<int32_t> logprobs, prompt_logprobs;
  bool tokens_as_token_ids = false;
  bool return_token_ids = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool include_timings = false;  // how long what took, with the usage; streamed: a last chunk
};

std::unique_ptr<AnswerFormat> make_completion_format(CompletionFormatOptions options);

}  // namespace omnibus
