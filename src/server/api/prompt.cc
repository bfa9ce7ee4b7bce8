#include "prompt.h"

#include <algorithm>

#include <fmt/format.h>

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

// A field has an effect if the prompt is another one without it: that holds for any template.
void note_fields_without_effect(const ChatTemplate& chat_template, const RenderOptions& options,
                                const std::string& text, Json variables, std::vector<std::string>& ignored) {
  const auto same_without_them = [&] {
    const auto again = chat_template.render(variables, options);
    return again.ok() && again->text == text;
  };
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
  for (const Json& item : prompt) {
    const int64_t id = integer_of(item);
    if (id >= tokenizer.vocab_size()) {
      return invalid_field(
          "prompt", fmt::format("Invalid 'prompt': token id {} is not in the vocabulary of {} tokens", id,
                                tokenizer.vocab_size()));
    }
    result.ids.push_back(static_cast<TokenId>(id));
  }
  result.text = tokenizer.decode(result.ids, /*skip_special_tokens=*/false);
  return result;
}

}  // namespace

StatusOr<std::vector<TokenId>> encode_chat(const ApiContext& context, ChatPromptInput input,
                                           std::vector<std::string>& ignored) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto chat_template, template_for(context, input.chat_template));
  const Tokenizer& tokenizer = context.tokenizer();
  Json variables = input.kwargs.is_object() ? std::move(input.kwargs) : Json::object();
  if (!input.reasoning_effort.empty()) {
    variables["reasoning_effort"] = input.reasoning_effort;
    if (input.reasoning_effort == "none") variables["enable_thinking"] = false;
  }
  variables["messages"] = std::move(input.messages);
  RenderOptions options = render_options_for(tokenizer);
  options.add_generation_prompt = input.add_generation_prompt;
  const auto rendered = chat_template->render(variables, options);
  if (!rendered.ok()) return invalid_field("messages", status_message(rendered.status()));
  if (rendered->text.size() > kMaxPromptBytes) return too_long("messages");
  note_fields_without_effect(*chat_template, options, rendered->text, std::move(variables), ignored);
  return tokenizer.encode(rendered->segments(), EncodeOptions{input.add_special_tokens});
}

StatusOr<std::vector<TextPrompt>> encode_prompts(const ApiContext& context, const Json& prompt,
                                                 bool add_special_tokens) {
  std::vector<TextPrompt> prompts;
  const bool many = prompt.is_array() && !prompt[0].is_number();
  for (size_t i = 0; i < (many ? prompt.size() : 1); ++i) {
    OMNIBUS_ASSIGN_OR_RETURN(TextPrompt one,
                             encode_one(context, many ? prompt[i] : prompt, add_special_tokens));
    if (!one.ids.empty()) one.first_bytes = context.tokenizer().token_bytes(one.ids.front());
    prompts.push_back(std::move(one));
  }
  return prompts;
}

}  // namespace omnibus
