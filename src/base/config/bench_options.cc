#include "omnibus/base/config/bench_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace omnibus {
namespace {

constexpr int64_t kMany = 1 << 30;
constexpr std::array<std::pair<const char*, BenchMetric>, 4> kMetrics = {{{"ttft", BenchMetric::kTtft},
                                                                          {"tpot", BenchMetric::kTpot},
                                                                          {"itl", BenchMetric::kItl},
                                                                          {"e2el", BenchMetric::kE2el}}};

Status invalid(std::string message) { return absl::InvalidArgumentError(message); }

// The items of lists whose values may themselves be lists with commas.
std::vector<std::string> items_of(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find(',', begin), text.size());
      items.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return items;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Status read_metrics(BenchServeConfig& config) {
  config.metrics.clear();
  for (const std::string& item : items_of(config.metric_names)) {
    const auto* found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                     [&](const auto& metric) { return item == metric.first; });
    if (found == kMetrics.end()) {
      return invalid(fmt::format("--percentile-metrics: '{}' is none of ttft, tpot, itl, e2el", item));
    }
    config.metrics.push_back(found->second);
  }
  return {};
}

Status read_percentiles(BenchServeConfig& config) {
  config.percentiles.clear();
  for (const std::string& item : items_of(config.percentile_texts)) {
    const auto value = number_of(item);
    if (!value || *value <= 0 || *value > 100) {
      return invalid(fmt::format("--metric-percentiles: '{}' is no number above 0 and up to 100", item));
    }
    config.percentiles.push_back(*value);
  }
  return {};
}

Status read_slo(BenchServeConfig& config) {
  config.slo = {};
  for (const std::string& item : items_of(config.goodput_texts)) {
    const size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    std::optional<double>* limit = name == "ttft"   ? &config.slo.ttft_ms
                                   : name == "tpot" ? &config.slo.tpot_ms
                                   : name == "e2el" ? &config.slo.e2el_ms
                                                    : nullptr;
    const auto value = colon == std::string::npos ? std::nullopt : number_of(item.substr(colon + 1));
    if (limit == nullptr || !value || *value < 0) {
      return invalid(
          fmt::format("--goodput: '{}' is not NAME:MILLISECONDS with ttft, tpot or e2el as the name", item));
    }
    if (*limit) return invalid(fmt::format("--goodput: {} is given twice", name));
    *limit = *value;
  }
  if (!config.stream && (config.slo.ttft_ms || config.slo.tpot_ms)) {
    return invalid(
        fmt::format("--goodput: {} cannot be judged with --no-stream, where an answer comes whole; e2el can",
                    config.slo.ttft_ms ? "ttft" : "tpot"));
  }
  return {};
}

Status read_headers(BenchServeConfig& config) {
  config.headers.clear();
  for (const std::string& text : config.header_texts) {
    const size_t colon = text.find(':');
    const bool bad =
        colon == 0 || colon == std::string::npos ||
        std::any_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 32; }) ||
        text.find(' ') < colon;
    if (bad) return invalid(fmt::format("--header: '{}' is not NAME: VALUE", text));
    const size_t value = text.find_first_not_of(' ', colon + 1);
    config.headers.emplace_back(text.substr(0, colon), value == std::string::npos ? "" : text.substr(value));
  }
  return {};
}

void declare_server(OptionSet& options, BenchServeConfig& config) {
  options.begin_group("Server");
  options.add("base-url", config.base_url, "URL", "Where it is; a key is taken from OPENAI_API_KEY");
  options.add_choice("backend", config.backend,
                     {{"openai", BenchBackend::kCompletions}, {"openai-chat", BenchBackend::kChat}},
                     "Completions, or chat");
  options.add("endpoint", config.endpoint, "PATH",
              "Path of the requests (default: /v1/completions or /v1/chat/completions)");
  options.add("model", config.model, "NAME", "Model to ask for (default: the first of /v1/models)");
  options.add_list("header", config.header_texts, "NAME: VALUE", "Header sent with each request; repeatable");
  options.add("ssl-ca-certs", config.ca_certs, "FILE",
              "PEM certificates to trust with https (default: the system's)");
  options.add("insecure", config.insecure, "Trust any certificate");
  options.add("request-timeout", config.request_timeout_s, 0.001, 1e9,
              "Seconds after which a request has failed");
}

void declare_load(OptionSet& options, BenchServeConfig& config) {
  options.begin_group("Load");
  options.add("num-prompts", config.num_prompts, 1, kMany, "Requests that are measured");
  options.add("num-warmups", config.num_warmups, 0, kMany, "Requests before those, not measured");
  options.add_or_infinity("request-rate", config.request_rate, 1e-6,
                          "Requests that arrive per second; inf: all at once");
  options.add_or_infinity("burstiness", config.burstiness, 1e-3,
                          "1: Poisson arrivals; less: more bursty; more: more even; inf: constant gaps");
  options.add("max-concurrency", config.max_concurrency, 1, kMany,
              "Most requests under way at once (default: no limit)");
  options.add("seed", config.seed, 0, std::numeric_limits<int64_t>::max(),
              "Of arrivals, lengths and prompts: the same seed sends the same");
}

void declare_lengths(OptionSet& options, BenchServeConfig& config) {
  options.begin_group("Prompts and answers");
  options.add_choice("dataset-name", config.dataset,
                     {{"random", BenchDataset::kRandom}, {"sharegpt", BenchDataset::kShareGpt}},
                     "random: lengths as below; sharegpt: lengths distributed like ShareGPT's");
  options.add("random-input-len", config.random_input_len, 1, kMany,
              "Tokens of a prompt, prefix not counted");
  options.add("random-output-len", config.random_output_len, 1, kMany, "Tokens of an answer");
  options.add("random-range-ratio", config.random_range_ratio, 0, 0.999,
              "Lengths are uniform between (1 - X) and (1 + X) times those");
  options.add("random-prefix-len", config.random_prefix_len, 0, kMany,
              "Shared tokens in front of each prompt");
  options.add("num-prefixes", config.num_prefixes, 1, kMany, "How many different prefixes are shared");
  options.add("stream", config.stream, "Ask for streams; otherwise only E2EL can be measured");
  options.add("ignore-eos", config.ignore_eos, "Ask the server to go on to the full length");
  options.add("temperature", config.temperature, 0, 2, "(default: the server's)");
  options.add("extra-body", config.extra_body, "JSON", "Object whose fields are added to each request");
}

void declare_report(OptionSet& options, BenchServeConfig& config) {
  options.begin_group("Report");
  options.add_list("percentile-metrics", config.metric_names, "LIST",
                   "Which times are reported, by commas (default: ttft,tpot,itl,e2el)");
  options.add_list("metric-percentiles", config.percentile_texts, "LIST",
                   "Which percentiles, by commas (default: 90,95,99)");
  options.add_list("goodput", config.goodput_texts, "NAME:MS",
                   "Limit that a good request keeps: ttft, tpot or e2el (without a stream only e2el); "
                   "repeatable, or by commas");
  options.add("progress", config.progress, "Show how it goes");
  options.add("save-result", config.save_result, "Write a JSON file with settings and results");
  options.add("save-detailed", config.save_detailed, "Write each request's record into it too");
  options.add("result-filename", config.result_filename, "FILE",
              "Its name; implies --save-result (default: bench-serve-TIME.json)");
}

}  // namespace

const char* name_of(BenchMetric metric) {
  const auto* found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                   [&](const auto& entry) { return entry.second == metric; });
  return found->first;
}

void declare_bench_options(OptionSet& options, BenchServeConfig& config) {
  declare_server(options, config);
  declare_load(options, config);
  declare_lengths(options, config);
  declare_report(options, config);
}

Status finish_bench_config(BenchServeConfig& config, const EnvLookup& env) {
  if (config.endpoint.empty()) {
    config.endpoint = config.backend == BenchBackend::kChat ? "/v1/chat/completions" : "/v1/completions";
  }
  if (!config.endpoint.starts_with('/')) {
    return invalid(fmt::format("--endpoint: '{}' does not begin with /", config.endpoint));
  }
  config.api_key = env("OPENAI_API_KEY").value_or("");
  if (!config.extra_body.empty()) {
    const auto body = nlohmann::json::parse(config.extra_body, nullptr, /*allow_exceptions=*/false);
    if (!body.is_object()) return invalid("--extra-body: is not a JSON object");
  }
  OMNIBUS_RETURN_IF_ERROR(read_headers(config));
  OMNIBUS_RETURN_IF_ERROR(read_metrics(config));
  OMNIBUS_RETURN_IF_ERROR(read_percentiles(config));
  OMNIBUS_RETURN_IF_ERROR(read_slo(config));
  if (!config.result_filename.empty() || config.save_detailed) config.save_result = true;
  return {};
}

}  // namespace omnibus
