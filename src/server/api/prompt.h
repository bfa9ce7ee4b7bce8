// Prompts: from validated fields to token ids. Runs on the text pool.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

#include "api_context.h"

namespace omnibus {

// Text of one prompt, before the context is looked at: more is 413.
inline constexpr size_t kMaxPromptBytes = size_t{16} << 20;

struct ChatPromptInput {
  Json messages;  // normalised
  Json kwargs;    // object or null
  std::string reasoning_effort;
  std::string chat_template;  // "" : the model's
  bool add_generation_prompt = true;
  bool add_special_tokens = false;
};

// Renders and tokenises. Errors are the client's: 400 with the template's own message. `ignored` gets the
// names of fields that the template made nothing of (reasoning_effort, messages[i].name).
StatusOr<std::vector<TokenId>> encode_chat(const ApiContext& context, ChatPromptInput input,
                                           std::vector<std::string>& ignored);

struct TextPrompt {
  std::vector<TokenId> ids;
  std::string text;         // for echo
  size_t added_prefix = 0;  // ids in front of the text's own (BOS)
  std::string first_bytes;  // of ids[0]
};

// `prompt` has passed check_prompt: one prompt per item, or one in all. Text goes to the tokenizer as it is,
// control tokens included: whoever writes raw prompts writes the whole prompt. Ids outside the vocabulary are
// 400.
StatusOr<std::vector<TextPrompt>> encode_prompts(const ApiContext& context, const Json& prompt,
                                                 bool add_special_tokens);

}  // namespace omnibus
