#include "request_params.h"

#include <algorithm>

#include <fmt/format.h>

namespace omnibus {

Status resolve_logprob_count(const ApiContext& context, std::string_view param, int32_t& count) {
  const int32_t most = context.config.max_logprobs;
  if (most >= 0 && (count < 0 || count > most)) {
    return invalid_field(
        param,
        fmt::format("Invalid '{}': this server gives at most {} alternatives (--max-logprobs), got {}", param,
                    most, count),
        count < 0 ? "integer_below_min_value" : "integer_above_max_value");
  }
  const int32_t all = context.tokenizer().vocab_size();
  count = count < 0 ? all : std::min(count, all);
  return {};
}

Status check_alternatives(const ApiContext& context, std::string_view param, const SamplingParams& sampling,
                          size_t prompt_tokens) {
  const auto prompt = static_cast<int64_t>(prompt_tokens);
  const int64_t room = std::max<int64_t>(context.max_model_len() - prompt, 0);
  const int64_t answer = sampling.max_tokens > 0 ? std::min<int64_t>(sampling.max_tokens, room) : room;
  const auto check = [](std::string_view name, int64_t alternatives, int64_t positions) -> Status {
    if (alternatives * positions <= kMaxAlternatives) return {};
    return invalid_field(name,
                         fmt::format("Invalid '{}': {} alternatives at each of up to {} tokens are more than "
                                     "{}: ask for fewer, or for fewer tokens",
                                     name, alternatives, positions, kMaxAlternatives),
                         "integer_above_max_value");
  };
  OMNIBUS_RETURN_IF_ERROR(check(param, sampling.logprobs.value_or(0), answer));
  return check("prompt_logprobs", sampling.prompt_logprobs.value_or(0), prompt);
}

std::string tenant_salt(const HttpRequest& request, std::string_view own) {
  return request.tenant.empty() ? std::string(own) : fmt::format("{}@{}", request.tenant, own);
}

void set_origin(const HttpRequest& http, std::string_view salt, GenerateRequest& request) {
  request.tenant_salt = tenant_salt(http, salt);
  request.tenant = http.tenant;
  request.deadline = http.deadline_ns;
  request.log_id = http.request_id;
  request.trace_id = http.trace_id;
}

}  // namespace omnibus
