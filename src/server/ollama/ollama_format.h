// The answers of /api/generate and /api/chat: one JSON object, or a stream of them, one a line, the last of
// which says how it ended and how long it took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"

#include "api/answer_format.h"

namespace omnibus {

struct OllamaFormatOptions {
  std::string model;
  bool chat = false;      // "message" instead of "response"
  bool logprobs = false;  // were asked for
  // generate, unless raw: the prompt's ids; the answer's are added, and both go out as `context`.
  bool context = false;
  std::vector<TokenId> prompt_ids;
};

std::unique_ptr<AnswerFormat> make_ollama_format(OllamaFormatOptions options);

// The answer to a request without a prompt: "load", or with keep_alive 0 "unload".
HttpResponse ollama_empty_answer(const std::string& model, bool chat, const char* done_reason);

}  // namespace omnibus
