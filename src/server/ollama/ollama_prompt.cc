#include "ollama_prompt.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "omnibus/text/tokenizer/vocabulary_check.h"

#include "api/messages.h"

namespace omnibus {
namespace {

using Ids = std::vector<TokenId>;

// `limit`: of prompt and answer, of a prompt that was truncated already its own.
Status too_long(size_t tokens, int32_t limit, bool truncated) {
  const auto text =
      truncated ? fmt::format("the messages that truncation never drops have {} tokens, there is room for {}",
                              tokens, limit)
                : fmt::format(
                      "the prompt has {} tokens, the context holds {} of prompt and answer; "
                      "truncate: true drops what does not fit",
                      tokens, limit);
  return invalid_field("prompt", text, "context_length_exceeded");
}

// What a truncated prompt may have: num_predict tokens are left to the answer, at most half of the context; a
// quarter when the client does not say.
int32_t truncated_limit(int32_t context, int64_t num_predict) {
  const int64_t wanted = num_predict > 0 ? std::min<int64_t>(num_predict, context / 2) : context / 4;
  return static_cast<int32_t>(std::max<int64_t>(1, context - std::max<int64_t>(1, wanted)));
}

StatusOr<ChatPrompt> encode(const ApiContext& context, const OllamaFields& fields, Json messages,
                            std::vector<std::string>& ignored) {
  ChatPromptInput input;
  input.messages = std::move(messages);
  input.chat_template = fields.chat_template;
  if (fields.think) {
    input.kwargs = Json::object();
    input.names_kwargs = false;  // the client said `think`
    input.kwargs["enable_thinking"] = *fields.think;
  }
  input.reasoning_effort = fields.think_level;
  OMNIBUS_RETURN_IF_ERROR(resolve_ending(context, std::nullopt, std::nullopt, input));
  return encode_chat(context, std::move(input), ignored);
}

// Ollama's messages in the words of the messages that all doors share.
Status to_common_messages(Json& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (!message.is_object()) continue;  // refused by name later
    if (const auto images = message.find("images"); images != message.end()) {
      if (!images->is_null() && !(images->is_array() && images->empty())) {
        const std::string place = fmt::format("messages[{}].images", i);
        return invalid_field(place, fmt::format("'{}': this model does not support images", place),
                             "unsupported_parameter");
      }
      message.erase("images");
    }
    if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
    if (const auto thinking = message.find("thinking"); thinking != message.end()) {
      Json thoughts = std::move(*thinking);
      message.erase("thinking");
      if (!thoughts.is_null()) message["reasoning_content"] = std::move(thoughts);
    }
  }
  return {};
}

// `messages` without the `count` oldest that are no system messages.
Json without_oldest(const Json& messages, size_t count) {
  Json kept = Json::array();
  for (const Json& message : messages) {
    const bool system = message["role"] == "system";
    if (!system && count > 0) {
      --count;
      continue;
    }
    kept.push_back(message);
  }
  return kept;
}

StatusOr<ChatPrompt> truncated_chat(const ApiContext& context, const OllamaFields& fields,
                                    const Json& messages, int32_t limit, std::vector<std::string>& ignored) {
  const auto droppable = static_cast<size_t>(std::count_if(
      messages.begin(), messages.end(), [](const Json& message) { return message["role"] != "system"; }));
  const auto encode_without = [&](size_t count) {
    return encode(context, fields, without_oldest(messages, count), ignored);
  };
  // The fewest that have to go; the last message always stays. A template may refuse a conversation that
  // begins in its middle: then one more goes.
  size_t low = 0, high = droppable == 0 ? 0 : droppable - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const auto prompt = encode_without(middle);
    const bool fits = prompt.ok() && prompt->ids.size() <= static_cast<size_t>(limit);
    (fits ? high : low) = fits ? middle : middle + 1;
  }
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, encode_without(low));
  if (prompt.ids.size() > static_cast<size_t>(limit)) return too_long(prompt.ids.size(), limit, true);
  return prompt;
}

StatusOr<ChatPrompt> chat_prompt(const ApiContext& context, OllamaFields& fields,
                                 std::vector<std::string>& ignored) {
  OMNIBUS_RETURN_IF_ERROR(to_common_messages(fields.messages));
  OMNIBUS_RETURN_IF_ERROR(normalize_messages(fields.messages, context.config.strict_fields, ignored));
  const int32_t limit = context_of(context, fields);
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, encode(context, fields, fields.messages, ignored));
  if (prompt.ids.size() < static_cast<size_t>(limit)) return prompt;
  if (!fields.truncate) return too_long(prompt.ids.size(), limit, false);
  std::vector<std::string> told_already;
  return truncated_chat(context, fields, fields.messages,
                        truncated_limit(limit, fields.options.num_predict.value_or(-1)), told_already);
}

StatusOr<ChatPrompt> generate_prompt(const ApiContext& context, const OllamaFields& fields,
                                     std::vector<std::string>& ignored) {
  if (fields.raw) {
    OMNIBUS_ASSIGN_OR_RETURN(auto prompts, encode_prompts(context, Json(fields.prompt), true));
    return ChatPrompt{std::move(prompts.front().ids), {}};
  }
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("context", fields.context, context.tokenizer().vocab_size()));
  Json messages = Json::array();
  const auto add = [&](const char* role, const std::string& content) {
    messages.push_back(Json{{"role", role}, {"content", content}});
  };
  if (!fields.system.empty()) add("system", fields.system);
  add("user", fields.prompt);
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, encode(context, fields, std::move(messages), ignored));
  prompt.ids.insert(prompt.ids.begin(), fields.context.begin(), fields.context.end());
  return prompt;
}

}  // namespace

bool template_knows_thinking(const std::string& source) {
  return source.find("enable_thinking") != std::string::npos || source.find("<think>") != std::string::npos ||
         source.find("reasoning_effort") != std::string::npos;
}

bool served_model_thinks(const ApiContext& context) {
  if (context.supports_thinking()) return true;
  return context.chat_template != nullptr && template_knows_thinking(context.chat_template->source());
}

int32_t context_of(const ApiContext& context, const OllamaFields& fields) {
  return static_cast<int32_t>(
      std::min<int64_t>(fields.options.num_ctx.value_or(context.max_model_len()), context.max_model_len()));
}

StatusOr<ChatPrompt> encode_ollama_prompt(const OllamaContext& context, OllamaRoute route,
                                          OllamaFields& fields, std::vector<std::string>& ignored) {
  const ApiContext& api = context.api();
  if (route == OllamaRoute::kChat) return chat_prompt(api, fields, ignored);
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, generate_prompt(api, fields, ignored));
  Ids& ids = prompt.ids;
  const int32_t limit = context_of(api, fields);
  if (ids.size() < static_cast<size_t>(limit)) return prompt;
  if (!fields.truncate) return too_long(ids.size(), limit, false);
  // The first num_keep tokens stay (all of them for -1, as far as they fit), then the end of the prompt.
  const auto room = static_cast<size_t>(truncated_limit(limit, fields.options.num_predict.value_or(-1)));
  const int32_t asked = fields.options.num_keep;
  const size_t keep = std::min(asked < 0 ? room : static_cast<size_t>(asked), room - 1);
  ids.erase(ids.begin() + static_cast<ptrdiff_t>(keep), ids.end() - static_cast<ptrdiff_t>(room - keep));
  return prompt;
}

}  // namespace omnibus
