#include "generation_params.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"

#include "api/bad_words.h"
#include "api/request_params.h"

namespace omnibus {
namespace {

constexpr int64_t kDefaultCompletionTokens = 16;

Status wrong(std::string_view param, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(param, fmt::format("Invalid '{}': {}", param, message), code);
}

Status resolve_logprobs(const ApiContext& context, unsigned route, GenerationFields& f) {
  const bool chat = route == kOnChat;
  const char* param = chat ? "top_logprobs" : "logprobs";
  std::optional<int32_t>& asked = chat ? f.top_logprobs : f.logprob_count;
  if (asked) OMNIBUS_RETURN_IF_ERROR(resolve_logprob_count(context, param, *asked));
  if (chat && !f.logprobs && asked.value_or(0) > 0) return wrong(param, "needs logprobs: true");
  if (chat ? f.logprobs : asked.has_value()) f.sampling.logprobs = asked.value_or(0);
  if (!f.sampling.logprob_token_ids.empty() && !f.sampling.logprobs) {
    return wrong("logprob_token_ids", "needs logprobs");
  }
  if (f.prompt_logprobs) {
    if (f.stream) return wrong("prompt_logprobs", "cannot be streamed: needs stream: false");
    OMNIBUS_RETURN_IF_ERROR(resolve_logprob_count(context, "prompt_logprobs", *f.prompt_logprobs));
    f.sampling.prompt_logprobs = *f.prompt_logprobs;
  }
  // A prompt that is echoed on completions comes with what its answer has.
  if (f.echo && !chat && f.sampling.logprobs) {
    f.sampling.prompt_logprobs = std::max(*f.sampling.logprobs, f.prompt_logprobs.value_or(0));
  }
  return {};
}

Status resolve_best_of(GenerationFields& f) {
  if (!f.best_of || *f.best_of == f.n) return {};
  if (*f.best_of < f.n) {
    return wrong("best_of", fmt::format("must be at least n ({}), got {}", f.n, *f.best_of),
                 "integer_below_min_value");
  }
  if (f.stream) return wrong("best_of", "more than n cannot be streamed: needs stream: false");
  // The best are those of the highest mean logprob.
  if (!f.sampling.logprobs) f.sampling.logprobs = 0;
  return {};
}

Status resolve_repeat_penalty(GenerationFields& f) {
  if (!f.repeat_penalty) return {};
  if (f.repetition_penalty && *f.repetition_penalty != *f.repeat_penalty) {
    return wrong("repeat_penalty", fmt::format("repetition_penalty says {}, and this is the same field: {}",
                                               *f.repetition_penalty, *f.repeat_penalty));
  }
  f.sampling.repetition_penalty = *f.repeat_penalty;
  return {};
}

// In SamplingParams 0 means "until the context is full".
Status resolve_lengths(const ApiContext& context, unsigned route, GenerationFields& f) {
  const char* param = f.max_completion_tokens ? "max_completion_tokens" : "max_tokens";
  std::optional<int64_t> limit = f.max_completion_tokens ? f.max_completion_tokens : f.max_tokens;
  if (!limit && context.config.default_max_tokens > 0) limit = context.config.default_max_tokens;
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

Status check_priority(const ApiContext& context, int32_t priority) {
  if (priority == 0 || context.engine->config().policy == SchedulingPolicy::kPriority) return {};
  return wrong("priority",
               fmt::format("requests are served in order of arrival (no --scheduling-policy priority): must "
                           "be 0, got {}",
                           priority),
               "unsupported_parameter");
}

void resolve_seed(const ApiContext& context, GenerationFields& f) {
  if (f.seed) {
    f.sampling.seed = static_cast<uint64_t>(*f.seed);
  } else if (context.config.seed) {
    f.sampling.seed = splitmix64(*context.config.seed, context.requests->fetch_add(1));
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
  if (f.repetition_penalty) f.sampling.repetition_penalty = *f.repetition_penalty;
  OMNIBUS_RETURN_IF_ERROR(resolve_repeat_penalty(f));
  OMNIBUS_RETURN_IF_ERROR(check_priority(context, f.priority));
  f.sampling.bad_sequences = bad_word_sequences(context.tokenizer(), f.bad_words);
  OMNIBUS_RETURN_IF_ERROR(resolve_logprobs(context, route, f));
  OMNIBUS_RETURN_IF_ERROR(resolve_best_of(f));
  OMNIBUS_RETURN_IF_ERROR(resolve_lengths(context, route, f));
  resolve_seed(context, f);
  return {};
}

}  // namespace omnibus
