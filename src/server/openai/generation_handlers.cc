// POST /v1/chat/completions and /v1/completions: body to fields, fields to prompt, prompt to engine. All that
// can be wrong with a request is found here, before the first byte of its answer.
#include <fmt/format.h>

#include "omnibus/base/common/ids.h"

#include "api/generation.h"
#include "api/json_response.h"
#include "api/messages.h"
#include "api/prompt.h"
#include "api/request_body.h"
#include "api/request_params.h"
#include "chat_format.h"
#include "completion_format.h"
#include "generation_fields.h"
#include "generation_params.h"
#include "generation_request.h"
#include "handlers.h"

namespace omnibus {
namespace {

// More choices than this at once are a mistake or an attack: prompts x n.
constexpr size_t kMaxChoices = 1024;
constexpr char kOpenAiVersion[] = "2020-10-01";

using ParsedRequest = ParsedBody<GenerationFields>;

StatusOr<ParsedRequest> parse_request(const ApiContext& context, unsigned route, const HttpRequest& request) {
  GenerationFields initial;
  context.config.defaults.apply_to(initial.sampling);
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed,
                           parse_body(request, generation_field_table(),
                                      FieldOptions{route, context.config.strict_fields}, std::move(initial)));
  OMNIBUS_RETURN_IF_ERROR(resolve_generation_fields(context, route, parsed.fields));
  if (parsed.fields.truncation_side && !parsed.fields.truncate_prompt_tokens) {
    parsed.ignored.emplace_back("truncation_side");
  }
  return parsed;
}

int32_t choices_made(const GenerationFields& fields) {
  return static_cast<int32_t>(fields.best_of.value_or(fields.n));
}

PromptTruncation truncation_of(const GenerationFields& fields) {
  return {fields.truncate_prompt_tokens, fields.truncation_side.value_or(TruncationSide::kLeft)};
}

GenerationOptions options_for(const ParsedRequest& parsed, const char* param) {
  GenerationOptions options;
  options.stream = parsed.fields.stream;
  options.choices_per_prompt = choices_made(parsed.fields);
  if (options.choices_per_prompt > parsed.fields.n) options.choices_kept = parsed.fields.n;
  options.param = param;
  add_ignored_fields(options.headers, parsed.ignored);
  return options;
}

GenerateRequest engine_request(const HttpRequest& http, const GenerationFields& fields,
                               std::vector<TokenId> ids) {
  GenerateRequest request;
  request.prompt_token_ids = std::move(ids);
  request.sampling = fields.sampling;
  request.n = choices_made(fields);
  request.priority = fields.priority;
  set_origin(http, fields.cache_salt, request);
  return request;
}

// The prompt of a chat, and the text that `echo` puts in front of the answer.
struct OpenAiChatPrompt {
  ChatPrompt chat;
  std::string echo;
};

StatusOr<OpenAiChatPrompt> chat_prompt(const ApiContext& context, ParsedRequest& parsed) {
  GenerationFields& fields = parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(normalize_messages(fields.messages, context.config.strict_fields, parsed.ignored));
  ChatPromptInput input;
  input.messages = std::move(fields.messages);
  input.kwargs = std::move(fields.chat_template_kwargs);
  input.documents = std::move(fields.documents);
  input.reasoning_effort = fields.reasoning_effort;
  input.chat_template = fields.chat_template;
  OMNIBUS_RETURN_IF_ERROR(
      resolve_ending(context, fields.add_generation_prompt, fields.continue_final_message, input));
  input.add_special_tokens = fields.add_special_tokens.value_or(false);
  input.truncation = truncation_of(fields);
  OpenAiChatPrompt prompt;
  const Json& last = input.messages.back();
  if (fields.echo && (last["role"] == "assistant" || !input.add_generation_prompt)) {
    prompt.echo = last["content"].get<std::string>();
  } else if (fields.echo) {
    parsed.ignored.emplace_back("echo");
  }
  OMNIBUS_ASSIGN_OR_RETURN(prompt.chat, encode_chat(context, std::move(input), parsed.ignored));
  return prompt;
}

StatusOr<std::vector<TextPrompt>> completion_prompts(const ApiContext& context,
                                                     const GenerationFields& fields) {
  return encode_prompts(context, fields.prompt, fields.add_special_tokens.value_or(true),
                        truncation_of(fields));
}

}  // namespace

StatusOr<PreparedChat> prepare_chat(const ApiContext& context, const HttpRequest& request) {
  PreparedChat chat;
  OMNIBUS_ASSIGN_OR_RETURN(chat.parsed, parse_request(context, kOnChat, request));
  OMNIBUS_ASSIGN_OR_RETURN(OpenAiChatPrompt prompt, chat_prompt(context, chat.parsed));
  const GenerationFields& fields = chat.parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(
      check_alternatives(context, "top_logprobs", fields.sampling, prompt.chat.ids.size()));
  chat.echo = std::move(prompt.echo);
  chat.requests.push_back(engine_request(request, fields, std::move(prompt.chat.ids)));
  chat.requests.back().reasoning = std::move(prompt.chat.reasoning);
  chat.options = options_for(chat.parsed, "messages");
  return chat;
}

StatusOr<PreparedCompletion> prepare_completion(const ApiContext& context, const HttpRequest& request) {
  PreparedCompletion completion;
  OMNIBUS_ASSIGN_OR_RETURN(completion.parsed, parse_request(context, kOnCompletions, request));
  const GenerationFields& fields = completion.parsed.fields;
  OMNIBUS_ASSIGN_OR_RETURN(completion.prompts, completion_prompts(context, fields));
  const std::vector<TextPrompt>& prompts = completion.prompts;
  if (prompts.size() * static_cast<size_t>(choices_made(fields)) > kMaxChoices) {
    return invalid_field("n",
                         fmt::format("Invalid 'n': prompts times n must be at most {}, got {} times {}",
                                     kMaxChoices, prompts.size(), choices_made(fields)),
                         "integer_above_max_value");
  }
  for (const TextPrompt& prompt : prompts) {
    OMNIBUS_RETURN_IF_ERROR(check_alternatives(context, "logprobs", fields.sampling, prompt.ids.size()));
  }
  completion.options = options_for(completion.parsed, "prompt");
  completion.options.prompt_only = fields.max_tokens == 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    completion.requests.push_back(engine_request(request, fields, prompts[i].ids));
    // Each prompt of a list draws like a request of its own.
    if (!fields.seed) completion.requests.back().sampling.seed += i;
  }
  return completion;
}

namespace {

Status start_chat(const ApiContext& context, const HttpRequest& request, const ReplyPtr& reply) {
  OMNIBUS_ASSIGN_OR_RETURN(PreparedChat chat, prepare_chat(context, request));
  const GenerationFields& fields = chat.parsed.fields;
  ChatFormatOptions format;
  format.model = context.answer_model(fields.model);
  format.fingerprint = context.config.fingerprint;
  format.choices = fields.n;
  format.logprobs = fields.logprobs;
  format.tokens_as_token_ids = fields.tokens_as_token_ids;
  format.return_token_ids = fields.return_token_ids;
  format.include_usage = fields.include_usage.value_or(false);
  format.continuous_usage = format.include_usage && fields.continuous_usage;
  format.include_timings = fields.include_timings;
  format.include_reasoning = fields.include_reasoning;
  format.reasoning_field = context.config.reasoning_field;
  format.prompt_logprobs = fields.prompt_logprobs;
  format.echo = std::move(chat.echo);
  if (fields.return_token_ids) format.prompt_token_ids = chat.requests.front().prompt_token_ids;
  chat.options.headers.emplace_back("openai-version", kOpenAiVersion);
  Generation::start(context.engine, reply, make_chat_format(std::move(format)), std::move(chat.options),
                    std::move(chat.requests));
  return {};
}

Status start_completion(const ApiContext& context, const HttpRequest& request, const ReplyPtr& reply) {
  OMNIBUS_ASSIGN_OR_RETURN(PreparedCompletion completion, prepare_completion(context, request));
  const GenerationFields& fields = completion.parsed.fields;
  CompletionFormatOptions format;
  format.prompts = std::move(completion.prompts);
  format.model = context.answer_model(fields.model);
  format.fingerprint = context.config.fingerprint;
  format.choices_per_prompt = fields.n;
  format.echo = fields.echo;
  format.logprobs = fields.logprob_count;
  format.prompt_logprobs = fields.prompt_logprobs;
  format.tokens_as_token_ids = fields.tokens_as_token_ids;
  format.return_token_ids = fields.return_token_ids;
  format.include_usage = fields.include_usage.value_or(false);
  format.continuous_usage = format.include_usage && fields.continuous_usage;
  format.include_timings = fields.include_timings;
  completion.options.headers.emplace_back("openai-version", kOpenAiVersion);
  Generation::start(context.engine, reply, make_completion_format(std::move(format)),
                    std::move(completion.options), std::move(completion.requests));
  return {};
}

// What vLLM answers for a prompt that is not run: enough to run it elsewhere.
Json rendered_json(const ApiContext& context, const GenerationFields& fields, const char* id,
                   const std::vector<TokenId>& ids) {
  Json out;
  out["request_id"] = random_id(id);
  out["token_ids"] = ids;
  out["features"] = nullptr;
  out["model"] = context.answer_model(fields.model);
  return out;
}

StatusOr<HttpResponse> render_chat(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed, parse_request(context, kOnChat, request));
  OMNIBUS_ASSIGN_OR_RETURN(const OpenAiChatPrompt prompt, chat_prompt(context, parsed));
  return json_response(rendered_json(context, parsed.fields, "chatcmpl-", prompt.chat.ids), parsed.ignored);
}

StatusOr<HttpResponse> render_completion(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const ParsedRequest parsed, parse_request(context, kOnCompletions, request));
  OMNIBUS_ASSIGN_OR_RETURN(const auto prompts, completion_prompts(context, parsed.fields));
  Json body = Json::array();
  for (const TextPrompt& prompt : prompts) {
    body.push_back(rendered_json(context, parsed.fields, "cmpl-", prompt.ids));
  }
  return json_response(body, parsed.ignored);
}

StatusOr<HttpResponse> count_chat_tokens(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed, parse_request(context, kOnChat, request));
  OMNIBUS_ASSIGN_OR_RETURN(const OpenAiChatPrompt prompt, chat_prompt(context, parsed));
  Json body;
  body["object"] = "response.input_tokens";
  body["input_tokens"] = prompt.chat.ids.size();
  return json_response(body, parsed.ignored);
}

}  // namespace

HttpResponse handle_chat_input_tokens(const ApiContext& context, const HttpRequest& request) {
  auto response = count_chat_tokens(context, request);
  return response.ok() ? *std::move(response) : render_openai_error(response.status(), request.path);
}

void handle_chat(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start_chat(*context, request, reply);
  if (!status.ok()) reply->send(render_openai_error(status, request.path));
}

void handle_completion(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start_completion(*context, request, reply);
  if (!status.ok()) reply->send(render_openai_error(status, request.path));
}

HttpResponse handle_chat_render(const ApiContext& context, const HttpRequest& request) {
  auto response = render_chat(context, request);
  return response.ok() ? *std::move(response) : render_openai_error(response.status(), request.path);
}

HttpResponse handle_completion_render(const ApiContext& context, const HttpRequest& request) {
  auto response = render_completion(context, request);
  return response.ok() ? *std::move(response) : render_openai_error(response.status(), request.path);
}

}  // namespace omnibus
