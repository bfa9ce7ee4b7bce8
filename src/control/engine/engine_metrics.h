// The engine's metrics: vLLM's names, types and labels where vLLM has a metric, `omnibus_*` where it has
// none. What each means: docs/observability.md.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/control/engine/async_engine.h"

namespace omnibus {

// The engine at one moment; the counts are since its start.
struct EngineCounts {
  int32_t running = 0, waiting = 0;
  double kv_usage = 0;
  int64_t preemptions = 0, prefix_queries = 0, prefix_hits = 0;
};

// One step that was taken in.
struct StepSample {
  int64_t tokens = 0;       // computed
  int64_t duration_ns = 0;  // it had the worker
  int64_t host_ns = 0;      // scheduling it and taking it in
};

// One sequence that has ended.
struct EndedSequence {
  FinishReason reason = FinishReason::kStop;
  RequestUsage usage;
  RequestTimeline timeline;
  bool has_token = false;  // the prefill was completed
  bool expired = false;    // at its deadline
};

// Handles only: cheap to copy, any thread. Nothing looks up a label or makes a metric after creation.
struct EngineMetrics {
  // The longest sequence bounds the buckets of token counts.
  EngineMetrics(MetricsRegistry& registry, const std::string& model_name, int32_t max_model_len = 1 << 20);

  // Engine thread. `shown`: what was published before; becomes `now`.
  void publish(const EngineCounts& now, EngineCounts& shown) const;
  void add_step(const StepSample& step) const;

  // Where sinks are called. A request came in; its prompt was computed; `n` tokens of a sequence were
  // delivered at `time_ns`, those before at `last_token_ns` (0: none).
  void add_request(int32_t n, int32_t max_tokens) const;
  void add_prompt(int64_t tokens, int64_t cached) const;
  void add_tokens(size_t n, const RequestTimeline& timeline, MonotonicNs time_ns,
                  MonotonicNs last_token_ns) const;
  void add_end(const EndedSequence& sequence) const;
  void add_request_end(int64_t most_tokens_of_a_choice) const;

  // Any thread. A request was not let in.
  void add_refusal(const Status& why) const;

  std::string model_name;
  Gauge up;                  // 1 until the engine fails
  Gauge open_prompt_tokens;  // the ledger sets it: requests end where their sinks are called, too
  Counter surplus_tokens;

 private:
  void make_step_metrics(MetricsRegistry& registry, const MetricLabels& labels);
  void make_request_metrics(MetricsRegistry& registry, const MetricLabels& labels, int32_t max_model_len);
  void make_latency_metrics(MetricsRegistry& registry, const MetricLabels& labels);

  Gauge running_, waiting_, kv_usage_;
  Counter preemptions_, prefix_queries_, prefix_hits_;
  Counter prompt_tokens_, prompt_computed_, prompt_from_cache_, prompt_cached_, generation_tokens_;
  Counter success_[4];  // by FinishReason
  Counter expired_, refused_full_, refused_unavailable_, refused_invalid_;
  Counter steps_;
  Histogram iteration_tokens_, step_duration_, step_host_;
  Histogram request_prompt_tokens_, request_generation_tokens_, request_max_generation_tokens_;
  Histogram request_computed_tokens_, request_n_, request_max_tokens_;
  Histogram first_token_, inter_token_, per_output_token_;
  Histogram e2e_, queue_, inference_, prefill_, decode_;
};

// What does not change while the engine runs: information as labels, under vLLM's names.
void publish_engine_info(MetricsRegistry& registry, const EngineConfig& config, int32_t total_blocks);

}  // namespace omnibus
