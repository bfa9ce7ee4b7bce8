#include "prompt.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "omnibus/text/tokenizer/vocabulary_check.h"

#include "continuation.h"
#include "field_rule.h"

namespace omnibus {
namespace {

constexpr size_t kMaxNamesWithoutEffect = 16;

Status too_long(const char* param) {
  return with_detail(absl::InvalidArgumentError(
                         fmt::format("'{}' is longer than {} MiB of text", param, kMaxPromptBytes >> 20)),
                     ErrorDetail{.http = 413, .type = {}, .code = "string_above_max_length", .param = param});
}

StatusOr<std::shared_ptr<const ChatTemplate>> template_for(const ApiContext& context,
                                                           const std::string& source) {
  if (!source.empty()) {
    if (!context.config.trust_request_chat_template) {
      return invalid_field("chat_template", "Templates in requests are off (--trust-request-chat-template)",
                           "unsupported_parameter");
    }
    auto compiled = ChatTemplate::compile(source);
    if (!compiled.ok()) return invalid_field("chat_template", status_message(compiled.status()));
    return compiled;
  }
  if (!context.chat_template) {
    return invalid_field(
        "messages", "This model has no chat template: use /v1/completions, or start with --chat-template",
        "unsupported_parameter");
  }
  return context.chat_template;
}

// How the answer to a prompt is split: by the dialect of the template that it was made with. `open_message`
// is the text that the answer goes on with, if any.
ReasoningSplit reasoning_of(const ApiContext& context, const ChatTemplate& chat_template,
                            const RenderedPrompt& prompt, const std::string& open_message) {
  std::shared_ptr<const Dialect> dialect = context.config.dialect;
  if (&chat_template != context.chat_template.get()) {
    const auto own =
        select_dialect(context.config.reasoning_parser, chat_template.source(), context.tokenizer());
    if (own.ok()) dialect = *own;
  }
  if (!dialect) return {};
  const auto& format = dialect->reasoning;
  return {format, open_message.empty() ? reasoning_start(*format, prompt)
                                       : reasoning_start_behind(format, open_message)};
}

// A field has an effect if the prompt is another one without it: that holds for any template.
void note_fields_without_effect(const ChatTemplate& chat_template, const RenderOptions& options,
                                const std::string& text, Json variables, std::vector<std::string>& ignored) {
  const auto same_without_them = [&] {
    const auto again = chat_template.render(variables, options);
    return again.ok() && again->text == text;
  };
  if (variables.contains("documents")) {
    Json kept = variables;
    variables.erase("documents");
    if (same_without_them()) ignored.emplace_back("documents");
    variables = std::move(kept);
  }
  if (variables.contains("reasoning_effort")) {
    Json kept = variables;
    variables.erase("reasoning_effort");
    if (kept["reasoning_effort"] == "none") variables.erase("enable_thinking");
    if (same_without_them()) ignored.emplace_back("reasoning_effort");
    variables = std::move(kept);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < variables["messages"].size(); ++i) {
    Json& message = variables["messages"][i];
    if (!message.value("name", Json()).is_null()) names.push_back(fmt::format("messages[{}].name", i));
    message.erase("name");
  }
  if (names.empty() || !same_without_them()) return;
  names.resize(std::min(names.size(), kMaxNamesWithoutEffect));
  ignored.insert(ignored.end(), names.begin(), names.end());
}

// Whether a template shows a second system message: some take the first and skip or refuse the others.
bool takes_two_system_messages(const ChatTemplate& chat_template, const RenderOptions& options) {
  constexpr const char* kSecond = "omnibus-second-system-message";
  Json probe;
  probe["messages"] = Json::array();
  for (const auto& [role, content] :
       {std::pair{"system", "first"}, std::pair{"system", kSecond}, std::pair{"user", "hello"}}) {
    probe["messages"].push_back({{"role", role}, {"content", content}});
  }
  const auto rendered = chat_template.render(probe, options);
  return rendered.ok() && rendered->text.find(kSecond) != std::string::npos;
}

// Leading system messages as one, for a template that takes only one.
void join_system_messages(const ChatTemplate& chat_template, const RenderOptions& options, Json& messages) {
  size_t leading = 0;
  while (leading < messages.size() && messages[leading]["role"] == "system") ++leading;
  if (leading < 2 || takes_two_system_messages(chat_template, options)) return;
  std::string& joined = messages[0]["content"].get_ref<std::string&>();
  for (size_t i = 1; i < leading; ++i) joined += "\n\n" + messages[i]["content"].get<std::string>();
  messages.erase(messages.begin() + 1, messages.begin() + static_cast<ptrdiff_t>(leading));
}

// Cuts `ids` to what `truncation` allows; 400 for more than the context. Returns how many went at the left.
StatusOr<size_t> truncate(const ApiContext& context, const PromptTruncation& truncation,
                          std::vector<TokenId>& ids) {
  if (!truncation.most_tokens) return size_t{0};
  const int64_t context_length = context.max_model_len();
  int64_t most = *truncation.most_tokens;
  if (most > context_length) {
    return invalid_field("truncate_prompt_tokens",
                         fmt::format("Invalid 'truncate_prompt_tokens': must be at most {}, the context of "
                                     "the model, got {}",
                                     context_length, most),
                         "integer_above_max_value");
  }
  if (most < 0) most = std::max<int64_t>(context_length - 1, 1);
  const auto keep = static_cast<size_t>(most);
  if (ids.size() <= keep) return size_t{0};
  const size_t gone = ids.size() - keep;
  const bool left = truncation.side == TruncationSide::kLeft;
  const auto from = left ? ids.begin() : ids.begin() + static_cast<ptrdiff_t>(keep);
  ids.erase(from, from + static_cast<ptrdiff_t>(gone));
  return left ? gone : size_t{0};
}

Status truncate_text_prompt(const ApiContext& context, const PromptTruncation& truncation,
                            TextPrompt& prompt) {
  const size_t before = prompt.ids.size();
  OMNIBUS_ASSIGN_OR_RETURN(const size_t gone_left, truncate(context, truncation, prompt.ids));
  if (prompt.ids.size() == before) return {};
  if (gone_left > 0) prompt.added_prefix = 0;
  const auto own = std::span(prompt.ids).subspan(prompt.added_prefix);
  prompt.text = context.tokenizer().decode(own, /*skip_special_tokens=*/false);
  return {};
}

StatusOr<TextPrompt> encode_one(const ApiContext& context, const Json& prompt, bool add_special_tokens) {
  const Tokenizer& tokenizer = context.tokenizer();
  TextPrompt result;
  if (prompt.is_string()) {
    result.text = prompt.get<std::string>();
    if (result.text.size() > kMaxPromptBytes) return too_long("prompt");
    result.ids = tokenizer.encode(result.text, /*trusted=*/true, EncodeOptions{add_special_tokens});
    const TokenId bos = tokenizer.spec().bos;
    const bool added = !result.ids.empty() && result.ids.front() == bos && bos != kNoToken &&
                       !result.text.starts_with(tokenizer.token_bytes(bos));
    result.added_prefix = added ? 1 : 0;
    return result;
  }
  for (const Json& item : prompt) result.ids.push_back(static_cast<TokenId>(integer_of(item)));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("prompt", result.ids, tokenizer.vocab_size()));
  result.text = tokenizer.decode(result.ids, /*skip_special_tokens=*/false);
  return result;
}

// A variable whose name does not stand in the template cannot be read by it.
void note_variables_without_effect(const ChatTemplate& chat_template, const Json& kwargs,
                                   std::vector<std::string>& ignored) {
  for (const auto& [name, value] : kwargs.items()) {
    if (!value.is_null() && chat_template.source().find(name) == std::string::npos) {
      ignored.push_back("chat_template_kwargs." + name);
    }
  }
}

// A prompt as text, and what was found on the way to it.
struct RenderedChat {
  RenderedPrompt prompt;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::string open_message;  // the text of the message that is gone on with
};

StatusOr<RenderedChat> render(const ApiContext& context, ChatPromptInput input,
                              std::vector<std::string>& ignored) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto chat_template, template_for(context, input.chat_template));
  Json variables = context.config.default_template_kwargs.is_object() ? context.config.default_template_kwargs
                                                                      : Json::object();
  if (input.kwargs.is_object()) variables.update(input.kwargs);
  if (input.names_kwargs) note_variables_without_effect(*chat_template, input.kwargs, ignored);
  if (!input.reasoning_effort.empty()) {
    variables["reasoning_effort"] = input.reasoning_effort;
    if (input.reasoning_effort == "none") variables["enable_thinking"] = false;
  }
  if (!input.documents.empty()) variables["documents"] = std::move(input.documents);
  RenderOptions options = render_options_for(context.tokenizer());
  options.add_generation_prompt = input.add_generation_prompt;
  join_system_messages(*chat_template, options, input.messages);
  std::string open_message;
  if (input.continue_final_message) {
    OMNIBUS_ASSIGN_OR_RETURN(open_message, mark_final_message(input.messages));
  }
  variables["messages"] = std::move(input.messages);
  auto rendered = chat_template->render(variables, options);
  if (!rendered.ok()) return invalid_field("messages", status_message(rendered.status()));
  if (rendered->text.size() > kMaxPromptBytes) return too_long("messages");
  note_fields_without_effect(*chat_template, options, rendered->text, std::move(variables), ignored);
  if (input.continue_final_message) OMNIBUS_RETURN_IF_ERROR(cut_at_mark(open_message, *rendered));
  return RenderedChat{*std::move(rendered), chat_template, std::move(open_message)};
}

}  // namespace

StatusOr<RenderedPrompt> render_chat(const ApiContext& context, ChatPromptInput input,
                                     std::vector<std::string>& ignored) {
  OMNIBUS_ASSIGN_OR_RETURN(RenderedChat chat, render(context, std::move(input), ignored));
  return std::move(chat.prompt);
}

StatusOr<ChatPrompt> encode_chat(const ApiContext& context, ChatPromptInput input,
                                 std::vector<std::string>& ignored) {
  const EncodeOptions options{input.add_special_tokens};
  const PromptTruncation truncation = input.truncation;
  OMNIBUS_ASSIGN_OR_RETURN(const RenderedChat chat, render(context, std::move(input), ignored));
  ChatPrompt prompt;
  prompt.ids = context.tokenizer().encode(chat.prompt.segments(), options);
  prompt.reasoning = reasoning_of(context, *chat.chat_template, chat.prompt, chat.open_message);
  OMNIBUS_RETURN_IF_ERROR(truncate(context, truncation, prompt.ids).status());
  return prompt;
}

Status resolve_ending(const ApiContext& context, std::optional<bool> add_generation_prompt,
                      std::optional<bool> continue_final_message, ChatPromptInput& input) {
  if (continue_final_message.value_or(false) && add_generation_prompt.value_or(false)) {
    return invalid_field("continue_final_message",
                         "'continue_final_message' and 'add_generation_prompt' cannot both be true");
  }
  const Json& messages = input.messages;
  const bool open_end = messages.back()["role"] == "assistant";
  if (open_end && context.config.prefill_assistant && !add_generation_prompt && !continue_final_message) {
    if (messages.size() > 1 && messages[messages.size() - 2]["role"] == "assistant") {
      return invalid_field("messages",
                           "Invalid 'messages': two assistant messages at the end, and this server goes on "
                           "with the last message (--prefill-assistant): only one can be");
    }
    continue_final_message = true;
  }
  input.continue_final_message = continue_final_message.value_or(false);
  input.add_generation_prompt = add_generation_prompt.value_or(!input.continue_final_message);
  return {};
}

StatusOr<std::vector<TextPrompt>> encode_prompts(const ApiContext& context, const Json& prompt,
                                                 bool add_special_tokens,
                                                 const PromptTruncation& truncation) {
  std::vector<TextPrompt> prompts;
  const bool many = prompt.is_array() && !prompt[0].is_number();
  for (size_t i = 0; i < (many ? prompt.size() : 1); ++i) {
    OMNIBUS_ASSIGN_OR_RETURN(TextPrompt one,
                             encode_one(context, many ? prompt[i] : prompt, add_special_tokens));
    OMNIBUS_RETURN_IF_ERROR(truncate_text_prompt(context, truncation, one));
    if (!one.ids.empty()) one.first_bytes = context.tokenizer().token_bytes(one.ids.front());
    prompts.push_back(std::move(one));
  }
  return prompts;
}

}  // namespace omnibus
