#include "stop_rules.h"

#include <algorithm>

namespace omnibus {
namespace {

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::optional<CoreStop> judge_token(const Request& request, TokenId token, int32_t n_output,
                                    int32_t max_model_len) {
  const SamplingParams& params = request.sampling();
  if (n_output > params.min_tokens) {
    if (contains(request.eos_token_ids, token)) return CoreStop{};
    if (contains(params.stop_token_ids, token)) return CoreStop{FinishReason::kStop, token};
  }
  const int64_t length = static_cast<int64_t>(request.prompt_token_ids.size()) + n_output;
  if (n_output >= params.max_tokens || length >= max_model_len)
    return CoreStop{FinishReason::kLength, std::monostate()};
  return std::nullopt;
}

}  // namespace omnibus
