// ParentRequest: one client request on its way through the engine. Its n choices are sequences of their own
// in the core; they meet again at the sink.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/contract/request/request.h"
#include "omnibus/control/engine/async_engine.h"

#include "stop_matcher.h"

namespace omnibus {

struct ParentRequest {
  RequestId id = 0;  // choice i is sequence id + i
  int32_t n = 1;
  int32_t prompt_tokens = 0;
  int32_t max_tokens = 0;   // of each choice, as far as there is room
  SamplingParams sampling;  // seed: the client's
  std::shared_ptr<const StopAutomaton> stops;
  ReasoningSplit reasoning;
  std::string tenant, log_id, trace_id;  // for the log
  OutputSink sink;
};

// The sequences of `request`; choice i samples with splitmix64(seed, i). `max_tokens` is what fits.
std::vector<Request> fan_out(const GenerateRequest& request, RequestId first_id, int32_t max_tokens,
                             const std::vector<TokenId>& end_of_generation, MonotonicNs arrival_ns);

}  // namespace omnibus
