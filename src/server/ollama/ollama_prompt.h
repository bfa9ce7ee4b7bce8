// The prompt of a generation request as token ids: template, raw, earlier context, and what to do when it is
// too long.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

#include "api/prompt.h"
#include "ollama_context.h"
#include "ollama_fields.h"

namespace omnibus {

// Whether a chat template has a switch for thinking, or writes thoughts itself.
bool template_knows_thinking(const std::string& source);
// Whether the served model may be asked to think.
bool served_model_thinks(const ApiContext& context);

// Tokens of prompt and answer that this request may have.
int32_t context_of(const ApiContext& context, const OllamaFields& fields);

// The ids, and how the answer is split (not under raw); longer than context_of() allows is 400, unless
// `truncate`: then the oldest messages (chat) or the middle of the prompt (generate) go. Moves from `fields`.
StatusOr<ChatPrompt> encode_ollama_prompt(const OllamaContext& context, OllamaRoute route,
                                          OllamaFields& fields, std::vector<std::string>& ignored);

}  // namespace omnibus
