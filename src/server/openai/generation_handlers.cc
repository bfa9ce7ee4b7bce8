// POST /v1/chat/completions and /v1/completions: body to fields, fields to prompt, prompt to engine. All that
// can be wrong with a request is found here, before the first byte of its answer.
#include <fmt/format.h>

#include "api/generation.h"
#include "api/messages.h"
#include "api/prompt.h"
#include "api/request_body.h"
#include "chat_format.h"
#include "completion_format.h"
#include "generation_fields.h"
#include "generation_params.h"
#include "handlers.h"

namespace omnibus {
namespace {

// More choices than this at once are a mistake or an attack: prompts x n.
constexpr size_t kMaxChoices = 1024;

using ParsedRequest = ParsedBody<GenerationFields>;

StatusOr<ParsedRequest> parse_request(const ApiContext& context, unsigned route, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(
      ParsedRequest parsed,
      parse_body(request, generation_field_table(), FieldOptions{route, context.config.strict_fields}));
  OMNIBUS_RETURN_IF_ERROR(resolve_generation_fields(context, route, parsed.fields));
  return parsed;
}

GenerationOptions options_for(const ParsedRequest& parsed, const char* param) {
  GenerationOptions options;
  options.stream = parsed.fields.stream;
  options.choices_per_prompt = parsed.fields.n;
  options.param = param;
  add_ignored_fields(options.headers, parsed.ignored);
  return options;
}

GenerateRequest engine_request(const GenerationFields& fields, std::vector<TokenId> ids) {
  GenerateRequest request;
  request.prompt_token_ids = std::move(ids);
  request.sampling = fields.sampling;
  request.n = fields.n;
  request.tenant_salt = fields.cache_salt;
  return request;
}

Status start_chat(const ApiContext& context, const HttpRequest& request, const ReplyPtr& reply) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed, parse_request(context, kOnChat, request));
  GenerationFields& fields = parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(normalize_messages(fields.messages, context.config.strict_fields, parsed.ignored));
  ChatPromptInput input;
  input.messages = std::move(fields.messages);
  input.kwargs = std::move(fields.chat_template_kwargs);
  input.reasoning_effort = fields.reasoning_effort;
  input.chat_template = fields.chat_template;
  input.add_generation_prompt = fields.add_generation_prompt;
  input.add_special_tokens = fields.add_special_tokens.value_or(false);
  OMNIBUS_ASSIGN_OR_RETURN(std::vector<TokenId> ids, encode_chat(context, std::move(input), parsed.ignored));

  ChatFormatOptions format;
  format.model = context.answer_model(fields.model);
  format.fingerprint = context.config.fingerprint;
  format.choices = fields.n;
  format.logprobs = fields.logprobs;
  format.tokens_as_token_ids = fields.tokens_as_token_ids;
  format.return_token_ids = fields.return_token_ids;
  format.include_usage = fields.include_usage.value_or(false);
  format.continuous_usage = format.include_usage && fields.continuous_usage;
  if (fields.return_token_ids) format.prompt_token_ids = ids;

  std::vector<GenerateRequest> requests;
  requests.push_back(engine_request(fields, std::move(ids)));
  Generation::start(context.engine, reply, make_chat_format(std::move(format)),
                    options_for(parsed, "messages"), std::move(requests));
  return {};
}

Status start_completion(const ApiContext& context, const HttpRequest& request, const ReplyPtr& reply) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed, parse_request(context, kOnCompletions, request));
  GenerationFields& fields = parsed.fields;
  CompletionFormatOptions format;
  OMNIBUS_ASSIGN_OR_RETURN(format.prompts,
                           encode_prompts(context, fields.prompt, fields.add_special_tokens.value_or(true)));
  if (format.prompts.size() * static_cast<size_t>(fields.n) > kMaxChoices) {
    return invalid_field("n",
                         fmt::format("Invalid 'n': prompts times n must be at most {}, got {} times {}",
                                     kMaxChoices, format.prompts.size(), fields.n),
                         "integer_above_max_value");
  }
  format.model = context.answer_model(fields.model);
  format.fingerprint = context.config.fingerprint;
  format.choices_per_prompt = fields.n;
  format.echo = fields.echo;
  format.logprobs = fields.logprob_count.has_value();
  format.tokens_as_token_ids = fields.tokens_as_token_ids;
  format.return_token_ids = fields.return_token_ids;
  format.include_usage = fields.include_usage.value_or(false);
  format.continuous_usage = format.include_usage && fields.continuous_usage;

  GenerationOptions options = options_for(parsed, "prompt");
  options.prompt_only = fields.max_tokens == 0;
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < format.prompts.size(); ++i) {
    requests.push_back(engine_request(fields, format.prompts[i].ids));
    // Each prompt of a list draws like a request of its own.
    if (!fields.seed) requests.back().sampling.seed += i;
  }
  Generation::start(context.engine, reply, make_completion_format(std::move(format)), std::move(options),
                    std::move(requests));
  return {};
}

}  // namespace

void handle_chat(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start_chat(*context, request, reply);
  if (!status.ok()) reply->send(render_openai_error(status, request.path));
}

void handle_completion(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start_completion(*context, request, reply);
  if (!status.ok()) reply->send(render_openai_error(status, request.path));
}

}  // namespace omnibus
