#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "omnibus/client/load_report.h"

namespace omnibus::client {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json number_or_inf(double value) { return std::isinf(value) ? Json("inf") : Json(value); }

Json settings_json(const BenchServeConfig& config) {
  Json out;
  out["base_url"] = config.base_url;
  out["backend"] = config.backend == BenchBackend::kChat ? "openai-chat" : "openai";
  out["endpoint"] = config.endpoint;
  out["num_prompts"] = config.num_prompts;
  out["num_warmups"] = config.num_warmups;
  out["request_rate"] = number_or_inf(config.request_rate);
  out["burstiness"] = number_or_inf(config.burstiness);
  out["max_concurrency"] = config.max_concurrency ? Json(*config.max_concurrency) : Json();
  out["seed"] = config.seed;
  out["dataset_name"] = config.dataset == BenchDataset::kShareGpt ? "sharegpt" : "random";
  out["random_input_len"] = config.random_input_len;
  out["random_output_len"] = config.random_output_len;
  out["random_range_ratio"] = config.random_range_ratio;
  out["random_prefix_len"] = config.random_prefix_len;
  out["num_prefixes"] = config.num_prefixes;
  out["stream"] = config.stream;
  out["ignore_eos"] = config.ignore_eos;
  out["temperature"] = config.temperature ? Json(*config.temperature) : Json();
  out["extra_body"] = config.extra_body.empty()
                          ? Json()
                          : Json::parse(config.extra_body, nullptr, /*allow_exceptions=*/false);
  out["request_timeout_s"] = config.request_timeout_s;
  return out;
}

Json seconds(MonotonicNs ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Json report_json(const LoadReport& report, const BenchServeConfig& config, const std::string& model) {
  Json out;
  out["model_id"] = model;
  out["settings"] = settings_json(config);
  // Where scripts that read vLLM's files look for them.
  for (const char* key : {"backend", "num_prompts", "request_rate", "burstiness", "max_concurrency"}) {
    out[key] = out["settings"][key];
  }
  out["duration"] = report.duration_s;
  out["completed"] = report.completed;
  out["failed"] = report.failed;
  out["failures"] = Json::object();
  for (const auto& [kind, failure] : report.failures) {
    out["failures"][kind] = {{"count", failure.count}, {"example", failure.example}};
  }
  out["total_input_tokens"] = report.input_tokens;
  out["total_output_tokens"] = report.output_tokens;
  out["total_cached_tokens"] = report.cached_tokens;
  out["answers_without_usage"] = report.uncounted;
  out["answers_of_another_length"] = report.wrong_length;
  out["output_events"] = report.outputs;
  out["request_throughput"] = report.per_second(report.completed);
  out["request_goodput"] = config.slo.empty() ? Json() : Json(report.per_second(report.good));
  out["good"] = config.slo.empty() ? Json() : Json(report.good);
  out["output_throughput"] = report.per_second(report.output_tokens);
  out["total_token_throughput"] = report.per_second(report.input_tokens + report.output_tokens);
  out["max_concurrent_requests"] = report.peak_concurrency;
  out["connections"] = report.connections;
  out["retries"] = report.retries;
  out["worst_lag_ms"] = report.worst_lag_ms;
  for (const BenchMetric metric : config.metrics) {
    const std::string name = name_of(metric);
    const Spread& spread = report.of(metric);
    if (spread.count == 0) continue;
    out["mean_" + name + "_ms"] = spread.mean;
    out["median_" + name + "_ms"] = spread.median;
    out["std_" + name + "_ms"] = spread.deviation;
    out["min_" + name + "_ms"] = spread.min;
    out["max_" + name + "_ms"] = spread.max;
    for (const auto& [q, value] : spread.percentiles) out[fmt::format("p{}_{}_ms", q, name)] = value;
  }
  return out;
}

Json records_json(const LoadResult& result) {
  Json out = Json::array();
  for (const RequestRecord& record : result.records) {
    Json item;
    item["input_len"] = record.planned.input_len;
    item["output_len"] = record.planned.output_len;
    item["prefix"] = record.planned.prefix;
    item["due"] = seconds(record.planned.at);
    item["sent"] = seconds(record.sent);
    item["ended"] = seconds(record.ended);
    item["prompt_tokens"] = record.has_usage ? Json(record.prompt_tokens) : Json();
    item["completion_tokens"] = record.has_usage ? Json(record.completion_tokens) : Json();
    item["cached_tokens"] = record.has_usage ? Json(record.cached_tokens) : Json();
    item["finish_reason"] = record.finish_reason;
    item["outputs"] = Json::array();
    for (const MonotonicNs at : record.outputs) item["outputs"].push_back(seconds(at));
    item["failure"] = record.ok() ? Json() : Json(failure_name(record));
    item["error"] = record.ok() ? Json() : Json(record.error);
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace omnibus::client
