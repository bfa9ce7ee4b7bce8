// POST /api/generate and /api/chat. All that can be wrong with a request is found here, before the first byte
// of its answer.
#include <algorithm>

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"

#include "api/generation.h"
#include "api/request_body.h"
#include "api/request_params.h"
#include "handlers.h"
#include "model_names.h"
#include "ollama_format.h"
#include "ollama_prompt.h"

namespace omnibus {
namespace {

Status check_thinking(const ApiContext& api, const OllamaFields& fields) {
  if (!fields.think.value_or(false) || fields.raw) return {};
  if (served_model_thinks(api)) return {};
  return invalid_field("think",
                       fmt::format("\"{}\" does not support thinking", name_for_error(fields.model)));
}

Status check_limits(const ApiContext& api, const OllamaFields& fields) {
  const int64_t num_ctx = fields.options.num_ctx.value_or(0);
  if (num_ctx > api.max_model_len()) {
    return invalid_field("num_ctx", fmt::format("option \"num_ctx\": {} is more than the {} tokens of this "
                                                "server's context (--max-model-len)",
                                                num_ctx, api.max_model_len()));
  }
  if (api.config.max_logprobs >= 0 && fields.top_logprobs > api.config.max_logprobs) {
    return invalid_field("top_logprobs",
                         fmt::format("Invalid 'top_logprobs': this server gives at most {}, got {}",
                                     api.config.max_logprobs, fields.top_logprobs));
  }
  return {};
}

uint64_t seed_for(const ApiContext& api, const OllamaFields& fields) {
  const int64_t asked = fields.options.seed.value_or(-1);
  if (asked != -1) return static_cast<uint64_t>(asked);
  if (api.config.seed) return splitmix64(*api.config.seed, api.requests->fetch_add(1));
  return random_seed();
}

SamplingParams sampling_for(const ApiContext& api, const OllamaFields& fields, size_t prompt_tokens) {
  SamplingParams sampling = fields.options.sampling;
  sampling.seed = seed_for(api, fields);
  if (fields.logprobs) sampling.logprobs = fields.top_logprobs;
  const int64_t room = context_of(api, fields) - static_cast<int64_t>(prompt_tokens);
  const int64_t asked = fields.options.num_predict.value_or(-1);
  const int64_t wanted = asked > 0 ? asked : room;
  sampling.max_tokens = static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(room, 1)));
  return sampling;
}

bool is_empty(OllamaRoute route, const OllamaFields& fields) {
  return route == OllamaRoute::kGenerate ? fields.prompt.empty()
                                         : fields.messages.is_null() || fields.messages.empty();
}

Status start(const OllamaContext& context, OllamaRoute route, const HttpRequest& request,
             const ReplyPtr& reply) {
  const ApiContext& api = context.api();
  OMNIBUS_ASSIGN_OR_RETURN(
      ParsedOllama parsed,
      parse_ollama_body(request.body, route, api.config.strict_fields, api.config.defaults));
  OllamaFields& fields = parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(context.check_served(fields.model));
  if (fields.model.empty()) fields.model = api.config.model_names.front();
  const bool chat = route == OllamaRoute::kChat;
  context.touch(fields.keep_alive);
  if (is_empty(route, fields)) {
    const bool unload = fields.keep_alive == 0;
    HttpResponse response = ollama_empty_answer(fields.model, chat, unload ? "unload" : "load");
    add_ignored_fields(response.headers, parsed.ignored);
    reply->send(std::move(response));
    return {};
  }
  OMNIBUS_RETURN_IF_ERROR(check_thinking(api, fields));
  OMNIBUS_RETURN_IF_ERROR(check_limits(api, fields));
  const int32_t default_max_tokens = api.config.default_max_tokens;
  if (!fields.options.num_predict && default_max_tokens > 0) fields.options.num_predict = default_max_tokens;
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, encode_ollama_prompt(context, route, fields, parsed.ignored));

  OllamaFormatOptions format;
  format.model = fields.model;
  format.chat = chat;
  format.logprobs = fields.logprobs;
  format.context = !chat && !fields.raw;
  if (format.context) format.prompt_ids = prompt.ids;
  GenerationOptions options;
  options.stream = fields.stream;
  options.param = chat ? "messages" : "prompt";
  add_ignored_fields(options.headers, parsed.ignored);
  std::vector<GenerateRequest> requests(1);
  set_origin(request, {}, requests[0]);
  requests[0].sampling = sampling_for(api, fields, prompt.ids.size());
  requests[0].prompt_token_ids = std::move(prompt.ids);
  requests[0].reasoning = std::move(prompt.reasoning);
  Generation::start(api.engine, reply, make_ollama_format(std::move(format)), std::move(options),
                    std::move(requests));
  return {};
}

}  // namespace

void handle_ollama_generation(const OllamaContext& context, OllamaRoute route, const HttpRequest& request,
                              const ReplyPtr& reply) {
  const Status status = start(context, route, request, reply);
  if (!status.ok()) reply->send(render_ollama_error(status, request.path));
}

}  // namespace omnibus
