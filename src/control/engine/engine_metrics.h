// The engine's metrics, under vLLM's names, labelled with the model.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/metrics.h"
#include "omnibus/contract/request/request_output.h"

namespace omnibus {

// Handles only: cheap to copy, any thread.
struct EngineMetrics {
  EngineMetrics(MetricsRegistry& registry, const std::string& model_name);

  // One more update of a sequence was delivered. `last_token_ns`: time of its tokens before; 0: none.
  void observe(const RequestOutput& output, MonotonicNs time_ns, MonotonicNs last_token_ns) const;

  Gauge running, waiting, kv_usage;
  Counter prompt_tokens, generation_tokens, preemptions, surplus_tokens;
  Histogram time_to_first_token, inter_token_latency, e2e_latency;
  Counter success[4];  // by FinishReason
};

}  // namespace omnibus
