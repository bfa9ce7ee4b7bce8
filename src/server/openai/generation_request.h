// A generation request that has been understood: all that can be wrong with it has been found, nothing has
// been answered. What is left is to choose the shape of the answer and to start it. Text pool.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

#include "api/api_context.h"
#include "api/generation.h"
#include "api/prompt.h"
#include "api/request_body.h"
#include "generation_fields.h"

namespace omnibus {

struct PreparedChat {
  ParsedBody<GenerationFields> parsed;
  std::string echo;  // text in front of each answer
  GenerationOptions options;
  std::vector<GenerateRequest> requests;  // one
};
StatusOr<PreparedChat> prepare_chat(const ApiContext& context, const HttpRequest& request);

struct PreparedCompletion {
  ParsedBody<GenerationFields> parsed;
  std::vector<TextPrompt> prompts;
  GenerationOptions options;
  std::vector<GenerateRequest> requests;  // one per prompt
};
StatusOr<PreparedCompletion> prepare_completion(const ApiContext& context, const HttpRequest& request);

}  // namespace omnibus
