#include "engine_metrics.h"

#include <vector>

#include "omnibus/base/common/clock.h"

namespace omnibus {
namespace {

using Buckets = std::vector<double>;

// The buckets of vLLM, with finer ones for steps and tokens that take less than its 10 ms.
const Buckets kFirstTokenSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                    1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const Buckets kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                               0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
const Buckets kRequestSeconds = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                 30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const Buckets kIterationTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const Buckets kChoices = {1, 2, 5, 10, 20};
const Buckets kStepSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                              0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
const Buckets kHostSeconds = {1e-5,   2.5e-5, 5e-5, 7.5e-5, 1e-4, 1.5e-4,
                              2.5e-4, 5e-4,   1e-3, 2.5e-3, 1e-2, 1e-1};

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// 1, 2, 5, 10, ... up to `most`.
Buckets token_buckets(int32_t most) {
  Buckets buckets;
  for (double power = 1;; power *= 10) {
    for (const double digit : {1, 2, 5}) {
      if (digit * power > most) return buckets;
      buckets.push_back(digit * power);
    }
  }
}

MetricLabels with(MetricLabels labels, const char* name, const char* value) {
  labels.emplace_back(name, value);
  return labels;
}

}  // namespace

EngineMetrics::EngineMetrics(MetricsRegistry& registry, const std::string& model, int32_t max_model_len)
    : model_name(model) {
  const MetricLabels labels = {{"model_name", model}, {"engine", "0"}};
  make_step_metrics(registry, labels);
  make_request_metrics(registry, labels, max_model_len);
  make_latency_metrics(registry, labels);
}

void EngineMetrics::make_step_metrics(MetricsRegistry& registry, const MetricLabels& labels) {
  up = registry.gauge("omnibus_engine_up", "1 while the engine works, 0 once it has failed", labels);
  up.set(1);
  running_ = registry.gauge("vllm:num_requests_running", "Sequences in execution", labels);
  waiting_ = registry.gauge("vllm:num_requests_waiting", "Sequences waiting to be processed", labels);
  open_prompt_tokens =
      registry.gauge("omnibus_open_prompt_tokens", "Prompt tokens of sequences that wait or run", labels);
  kv_usage_ = registry.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 1 = all", labels);
  preemptions_ = registry.counter("vllm:num_preemptions_total", "Preemptions for lack of KV blocks", labels);
  prefix_queries_ = registry.counter("vllm:prefix_cache_queries_total",
                                     "Prompt tokens looked up in the prefix cache", labels);
  prefix_hits_ =
      registry.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache", labels);
  steps_ = registry.counter("omnibus_steps_total", "Steps completed", labels);
  iteration_tokens_ = registry.histogram("vllm:iteration_tokens_total", "Tokens computed in a step",
                                         kIterationTokens, labels);
  step_duration_ =
      registry.histogram("omnibus_step_duration_seconds", "Time a step had the worker", kStepSeconds, labels);
  step_host_ = registry.histogram("omnibus_step_host_seconds",
                                  "Time the engine's thread took to plan a step and to take it in",
                                  kHostSeconds, labels);
  surplus_tokens = registry.counter("omnibus_surplus_tokens_total",
                                    "Tokens computed behind a stop string and dropped", labels);
}

void EngineMetrics::make_request_metrics(MetricsRegistry& registry, const MetricLabels& labels,
                                         int32_t max_model_len) {
  const Buckets tokens = token_buckets(max_model_len);
  prompt_tokens_ = registry.counter("vllm:prompt_tokens_total", "Prompt tokens processed", labels);
  const auto from = [&](const char* source) {
    return registry.counter("vllm:prompt_tokens_by_source_total", "Prompt tokens by where they came from",
                            with(labels, "source", source));
  };
  prompt_computed_ = from("local_compute");
  prompt_from_cache_ = from("local_cache_hit");
  prompt_cached_ =
      registry.counter("vllm:prompt_tokens_cached_total", "Prompt tokens that were not computed", labels);
  generation_tokens_ = registry.counter("vllm:generation_tokens_total", "Tokens generated", labels);
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError}) {
    success_[static_cast<size_t>(reason)] =
        registry.counter("vllm:request_success_total", "Sequences that ended, by reason",
                         with(labels, "finished_reason", to_string(reason)));
  }
  const auto refused = [&](const char* reason) {
    return registry.counter("omnibus_requests_refused_total", "Requests that were not let in, by reason",
                            with(labels, "reason", reason));
  };
  refused_full_ = refused("queue_full");
  refused_unavailable_ = refused("unavailable");
  refused_invalid_ = refused("invalid");
  expired_ = registry.counter("omnibus_requests_expired_total", "Sequences ended by their deadline", labels);
  request_prompt_tokens_ =
      registry.histogram("vllm:request_prompt_tokens", "Prompt tokens of a sequence", tokens, labels);
  request_generation_tokens_ =
      registry.histogram("vllm:request_generation_tokens", "Tokens generated for a sequence", tokens, labels);
  request_max_generation_tokens_ = registry.histogram("vllm:request_max_num_generation_tokens",
                                                      "Tokens of a request's longest choice", tokens, labels);
  request_computed_tokens_ =
      registry.histogram("vllm:request_prefill_kv_computed_tokens",
                         "Prompt tokens of a sequence that were computed, not cached", tokens, labels);
  request_n_ = registry.histogram("vllm:request_params_n", "Choices a request asked for", kChoices, labels);
  request_max_tokens_ = registry.histogram("vllm:request_params_max_tokens",
                                           "Most tokens a request allowed its answer", tokens, labels);
}

void EngineMetrics::make_latency_metrics(MetricsRegistry& registry, const MetricLabels& labels) {
  const auto make = [&](const char* name, const char* help, const Buckets& buckets) {
    return registry.histogram(name, help, buckets, labels);
  };
  first_token_ =
      make("vllm:time_to_first_token_seconds", "Time from arrival to the first token", kFirstTokenSeconds);
  inter_token_ =
      make("vllm:inter_token_latency_seconds", "Time between two tokens of a sequence", kTokenSeconds);
  per_output_token_ = make("vllm:request_time_per_output_token_seconds",
                           "Mean time between the tokens of a sequence", kTokenSeconds);
  e2e_ = make("vllm:e2e_request_latency_seconds", "Time from arrival to the end", kRequestSeconds);
  queue_ = make("vllm:request_queue_time_seconds", "Time a sequence waited", kRequestSeconds);
  inference_ =
      make("vllm:request_inference_time_seconds", "Time from the first step to the end", kRequestSeconds);
  prefill_ = make("vllm:request_prefill_time_seconds", "Time from the first step to the first token",
                  kRequestSeconds);
  decode_ = make("vllm:request_decode_time_seconds", "Time from the first token to the end", kRequestSeconds);
}

void EngineMetrics::publish(const EngineCounts& now, EngineCounts& shown) const {
  const auto add = [](const Counter& counter, int64_t total, int64_t before) {
    if (total != before) counter.add(static_cast<double>(total - before));
  };
  running_.set(now.running);
  waiting_.set(now.waiting);
  kv_usage_.set(now.kv_usage);
  add(preemptions_, now.preemptions, shown.preemptions);
  add(prefix_queries_, now.prefix_queries, shown.prefix_queries);
  add(prefix_hits_, now.prefix_hits, shown.prefix_hits);
  shown = now;
}

void EngineMetrics::add_step(const StepSample& step) const {
  steps_.add();
  iteration_tokens_.observe(static_cast<double>(step.tokens));
  step_duration_.observe(seconds(step.duration_ns));
  step_host_.observe(seconds(step.host_ns));
}

void EngineMetrics::add_request(int32_t n, int32_t max_tokens) const {
  request_n_.observe(n);
  request_max_tokens_.observe(max_tokens);
}

void EngineMetrics::add_prompt(int64_t tokens, int64_t cached) const {
  prompt_tokens_.add(static_cast<double>(tokens));
  prompt_computed_.add(static_cast<double>(tokens - cached));
  prompt_from_cache_.add(static_cast<double>(cached));
  prompt_cached_.add(static_cast<double>(cached));
}

void EngineMetrics::add_tokens(size_t n, const RequestTimeline& timeline, MonotonicNs time_ns,
                               MonotonicNs last_token_ns) const {
  if (n == 0) return;
  generation_tokens_.add(static_cast<double>(n));
  if (last_token_ns == 0) {
    first_token_.observe(seconds(timeline.first_token_ns - timeline.arrival_ns));
    return;
  }
  const double gap = seconds(time_ns - last_token_ns) / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) inter_token_.observe(gap);
}

void EngineMetrics::add_end(const EndedSequence& s) const {
  const RequestTimeline& t = s.timeline;
  success_[static_cast<size_t>(s.reason)].add();
  if (s.expired) expired_.add();
  e2e_.observe(seconds(t.e2e_ns()));
  queue_.observe(seconds(t.queue_ns()));
  request_prompt_tokens_.observe(s.usage.prompt_tokens);
  request_generation_tokens_.observe(s.usage.completion_tokens);
  if (!s.has_token) return;  // the other phases are not there
  request_computed_tokens_.observe(s.usage.prompt_tokens - s.usage.cached_tokens);
  inference_.observe(seconds(t.finished_ns - t.first_scheduled_ns));
  prefill_.observe(seconds(t.prefill_ns()));
  decode_.observe(seconds(t.decode_ns()));
  if (s.usage.completion_tokens > 1)
    per_output_token_.observe(seconds(t.decode_ns()) / (s.usage.completion_tokens - 1));
}

void EngineMetrics::add_request_end(int64_t most_tokens_of_a_choice) const {
  request_max_generation_tokens_.observe(static_cast<double>(most_tokens_of_a_choice));
}

void EngineMetrics::add_refusal(const Status& why) const {
  switch (why.code()) {
    case StatusCode::kResourceExhausted:
      return refused_full_.add();
    case StatusCode::kUnavailable:
      return refused_unavailable_.add();
    default:
      return refused_invalid_.add();
  }
}

void publish_engine_info(MetricsRegistry& registry, const EngineConfig& config, int32_t total_blocks) {
  registry
      .gauge("vllm:cache_config_info", "How the KV cache is laid out",
             {{"block_size", std::to_string(kTokensPerBlock)},
              {"num_gpu_blocks", std::to_string(total_blocks)},
              {"enable_prefix_caching", config.prefix_caching ? "True" : "False"},
              {"engine", "0"}})
      .set(1);
  registry
      .gauge("vllm:lora_requests_info", "Adapters in use; there are none here",
             {{"max_lora", "0"}, {"running_lora_adapters", ""}, {"waiting_lora_adapters", ""}})
      .set(static_cast<double>(wall_clock_seconds()));
}

}  // namespace omnibus
