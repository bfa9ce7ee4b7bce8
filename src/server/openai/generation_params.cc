#include "generation_params.h"

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

constexpr int64_t kDefaultCompletionTokens = 16;

Status wrong(std::string_view param, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(param, fmt::format("Invalid '{}': {}", param, message), code);
}

Status check_vocabulary(const ApiContext& context, const char* param, TokenId id) {
  const int32_t size = context.tokenizer().vocab_size();
  if (id >= 0 && id < size) return {};
  return wrong(param, fmt::format("token id {} is not in the vocabulary of {} tokens", id, size));
}

Status check_ids(const ApiContext& context, const SamplingParams& sampling) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    OMNIBUS_RETURN_IF_ERROR(check_vocabulary(context, "logit_bias", id));
  }
  for (const TokenId id : sampling.stop_token_ids) {
    OMNIBUS_RETURN_IF_ERROR(check_vocabulary(context, "stop_token_ids", id));
  }
  for (const TokenId id : sampling.allowed_token_ids) {
    OMNIBUS_RETURN_IF_ERROR(check_vocabulary(context, "allowed_token_ids", id));
  }
  return {};
}

Status resolve_logprobs(const ApiContext& context, unsigned route, GenerationFields& f) {
  const bool chat = route == kOnChat;
  const std::optional<int32_t> asked = chat ? f.top_logprobs : f.logprob_count;
  if (asked.value_or(0) > context.config.max_logprobs) {
    return wrong(
        chat ? "top_logprobs" : "logprobs",
        fmt::format("this server gives at most {} alternatives, got {}", context.config.max_logprobs, *asked),
        "integer_above_max_value");
  }
  if (chat && !f.logprobs && asked.value_or(0) > 0) return wrong("top_logprobs", "needs logprobs: true");
  if (chat ? f.logprobs : asked.has_value()) f.sampling.logprobs = asked.value_or(0);
  if (f.echo) f.sampling.prompt_logprobs = f.sampling.logprobs;
  return {};
}

// In SamplingParams 0 means "until the context is full".
Status resolve_lengths(unsigned route, GenerationFields& f) {
  const char* param = f.max_completion_tokens ? "max_completion_tokens" : "max_tokens";
  std::optional<int64_t> limit = f.max_completion_tokens ? f.max_completion_tokens : f.max_tokens;
  if (!limit && route == kOnCompletions) limit = kDefaultCompletionTokens;
  if (limit && *limit < 0) limit.reset();
  if (limit && f.sampling.min_tokens > *limit) {
    return wrong("min_tokens",
                 fmt::format("must be at most {} ({}), got {}", param, *limit, f.sampling.min_tokens),
                 "integer_above_max_value");
  }
  // max_tokens: 0 asks for the prompt alone (echo): the engine makes one token, which is dropped.
  f.sampling.max_tokens = limit ? static_cast<int32_t>(std::max<int64_t>(*limit, 1)) : 0;
  return {};
}

void resolve_seed(const ApiContext& context, GenerationFields& f) {
  if (f.seed) {
    f.sampling.seed = static_cast<uint64_t>(*f.seed);
  } else if (context.config.seed) {
    f.sampling.seed = splitmix64(*context.config.seed, context.requests.fetch_add(1));
  } else {
    f.sampling.seed = random_seed();
  }
}

}  // namespace

Status resolve_generation_fields(const ApiContext& context, unsigned route, GenerationFields& f) {
  OMNIBUS_RETURN_IF_ERROR(context.check_model(f.model));
  const bool chat = route == kOnChat;
  if ((chat ? f.messages : f.prompt).is_null()) {
    const char* param = chat ? "messages" : "prompt";
    return invalid_field(param, fmt::format("Missing required parameter: '{}'", param),
                         "missing_required_parameter");
  }
  if (f.include_usage && !f.stream) return wrong("stream_options", "needs stream: true");
  if (f.best_of && *f.best_of != f.n) {
    return invalid_field(
        "best_of", fmt::format("'best_of' is only supported when it equals n ({}), got {}", f.n, *f.best_of),
        "unsupported_parameter");
  }
  OMNIBUS_RETURN_IF_ERROR(check_ids(context, f.sampling));
  OMNIBUS_RETURN_IF_ERROR(resolve_logprobs(context, route, f));
  OMNIBUS_RETURN_IF_ERROR(resolve_lengths(route, f));
  resolve_seed(context, f);
  return {};
}

}  // namespace omnibus
