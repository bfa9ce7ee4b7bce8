#include "parent_request.h"

#include "omnibus/base/common/rng.h"

namespace omnibus {

std::vector<Request> fan_out(const GenerateRequest& request, RequestId first_id, int32_t max_tokens,
                             const std::vector<TokenId>& end_of_generation, MonotonicNs arrival_ns) {
  Request base;
  base.prompt_token_ids = request.prompt_token_ids;
  base.tenant_salt = request.tenant_salt;
  base.tenant = request.tenant;
  base.priority = request.priority;
  base.deadline = request.deadline;
  base.arrival_ns = arrival_ns;
  if (!request.sampling.ignore_eos) base.eos_token_ids = end_of_generation;
  SamplingParams sampling = request.sampling;
  if (sampling.max_tokens <= 0 || sampling.max_tokens > max_tokens) sampling.max_tokens = max_tokens;

  std::vector<Request> choices;
  for (int32_t i = 0; i < request.n; ++i) {
    Request choice = base;
    choice.id = first_id + static_cast<RequestId>(i);
    sampling.seed = splitmix64(request.sampling.seed, static_cast<uint64_t>(i));
    choice.params = sampling;
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace omnibus
