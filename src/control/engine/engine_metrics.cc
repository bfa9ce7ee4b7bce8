#include "engine_metrics.h"

namespace omnibus {
namespace {

constexpr double kSecond = 1e9;

double seconds(int64_t ns) { return static_cast<double>(ns) / kSecond; }

}  // namespace

EngineMetrics::EngineMetrics(MetricsRegistry& registry, const std::string& model_name) {
  const MetricLabels model = {{"model_name", model_name}};
  running = registry.gauge("vllm:num_requests_running", "Sequences in execution", model);
  waiting = registry.gauge("vllm:num_requests_waiting", "Sequences waiting to be processed", model);
  kv_usage = registry.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 1 = all", model);
  prompt_tokens = registry.counter("vllm:prompt_tokens_total", "Prompt tokens processed", model);
  generation_tokens = registry.counter("vllm:generation_tokens_total", "Tokens generated", model);
  preemptions = registry.counter("vllm:num_preemptions_total", "Preemptions for lack of KV blocks", model);
  surplus_tokens = registry.counter("omnibus_surplus_tokens_total",
                                    "Tokens computed behind a stop string and dropped", model);
  time_to_first_token =
      registry.histogram("vllm:time_to_first_token_seconds", "Time from arrival to the first token",
                         {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                          1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560},
                         model);
  inter_token_latency =
      registry.histogram("vllm:inter_token_latency_seconds", "Time between two tokens of a sequence",
                         {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                          0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80},
                         model);
  e2e_latency = registry.histogram(
      "vllm:e2e_request_latency_seconds", "Time from arrival to the end",
      {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}, model);
  for (FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError})
    success[static_cast<size_t>(reason)] =
        registry.counter("vllm:request_success_total", "Sequences that ended, by reason",
                         {{"model_name", model_name}, {"finished_reason", to_string(reason)}});
}

void EngineMetrics::observe(const RequestOutput& output, MonotonicNs time_ns,
                            MonotonicNs last_token_ns) const {
  const RequestTimeline& t = output.timeline;
  const size_t n = output.token_ids.size();
  if (n > 0) {
    generation_tokens.add(static_cast<double>(n));
    if (last_token_ns == 0) {
      time_to_first_token.observe(seconds(t.first_token_ns - t.arrival_ns));
    } else {
      const double gap = seconds(time_ns - last_token_ns) / static_cast<double>(n);
      for (size_t i = 0; i < n; ++i) inter_token_latency.observe(gap);
    }
  }
  if (!output.finish_reason) return;
  success[static_cast<size_t>(*output.finish_reason)].add();
  e2e_latency.observe(seconds(t.finished_ns - t.arrival_ns));
}

}  // namespace omnibus
