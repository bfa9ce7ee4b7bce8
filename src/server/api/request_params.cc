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

std::string tenant_salt(const HttpRequest& request, std::string_view own) {
  return request.tenant.empty() ? std::string(own) : fmt::format("{}@{}", request.tenant, own);
}

}  // namespace omnibus
