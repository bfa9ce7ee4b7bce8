// Prompts: from validated fields to token ids. Runs on the text pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/text/template/dialect.h"

#include "api_context.h"

namespace omnibus {

// Text of one prompt, before the context is looked at: more is 413.
inline constexpr size_t kMaxPromptBytes = size_t{16} << 20;

// Which tokens of a prompt that is cut go: those at its left or its right end.
enum class TruncationSide { kLeft, kRight };

struct PromptTruncation {
  std::optional<int64_t> most_tokens;  // -1: as many as leave room for an answer
  TruncationSide side = TruncationSide::kLeft;
};

struct ChatPromptInput {
  Json messages;             // normalised
  Json kwargs;               // object or null
  bool names_kwargs = true;  // those that the template does not read are named among the ignored
  Json documents;            // array or null
  std::string reasoning_effort;
  std::string chat_template;  // "" : the model's
  // At most one of the two: what the template writes to begin an answer, or the last message left open.
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool add_special_tokens = false;
  PromptTruncation truncation;
};

struct ChatPrompt {
  std::vector<TokenId> ids;
  ReasoningSplit reasoning;  // of the answer to it
};
// The prompt as text. Errors are those of encode_chat.
StatusOr<RenderedPrompt> render_chat(const ApiContext& context, ChatPromptInput input,
                                     std::vector<std::string>& ignored);

// Renders and tokenises. Errors are the client's: 400 with the template's own message. `ignored` gets the
// names of fields that the template made nothing of (reasoning_effort, documents, messages[i].name).
StatusOr<ChatPrompt> encode_chat(const ApiContext& context, ChatPromptInput input,
                                 std::vector<std::string>& ignored);

struct TextPrompt {
  std::vector<TokenId> ids;
  std::string text;         // for echo
  size_t added_prefix = 0;  // ids in front of the text's own (BOS): 0 or 1
  std::string first_bytes;  // of ids[0]
};

// `prompt` has passed check_prompt: one prompt per item, or one in all. Text goes to the tokenizer as it is,
// control tokens included: whoever writes raw prompts writes the whole prompt. Ids outside the vocabulary are
// 400.
StatusOr<std::vector<TextPrompt>> encode_prompts(const ApiContext& context, const Json& prompt,
                                                 bool add_special_tokens,
                                                 const PromptTruncation& truncation = {});

// How a conversation ends, from what the client asked for and the server's --prefill-assistant (then an
// assistant message at the end is left open unless the client says otherwise). `messages` is normalised. 400
// when both are asked for, and for two assistant messages at the end under --prefill-assistant.
Status resolve_ending(const ApiContext& context, std::optional<bool> add_generation_prompt,
                      std::optional<bool> continue_final_message, ChatPromptInput& input);

}  // namespace omnibus
