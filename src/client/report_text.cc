#include <cmath>

#include <fmt/format.h>

#include "omnibus/client/load_report.h"
#include "omnibus/client/printable.h"

namespace omnibus::client {
namespace {

constexpr int kLabelWidth = 34;

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("{:<{}}{}\n", label, kLabelWidth, value);
}

std::string rate_text(const BenchServeConfig& config) {
  if (std::isinf(config.request_rate)) return "all at once";
  const std::string how = std::isinf(config.burstiness) ? "constant gaps"
                          : config.burstiness == 1      ? "Poisson"
                                                        : fmt::format("burstiness {}", config.burstiness);
  return fmt::format("{} per second, {}", config.request_rate, how);
}

std::string percentile_name(double q) { return fmt::format("p{}", q); }

std::string times_table(const LoadReport& report, const BenchServeConfig& config) {
  std::string out = fmt::format("\n{:<12}{:>10}{:>10}", "ms", "mean", "median");
  for (const double q : config.percentiles) out += fmt::format("{:>10}", percentile_name(q));
  out += fmt::format("{:>10}\n", "max");
  for (const BenchMetric metric : config.metrics) {
    const Spread& spread = report.of(metric);
    std::string name = name_of(metric);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (spread.count == 0) continue;
    out += fmt::format("{:<12}{:>10.2f}{:>10.2f}", name, spread.mean, spread.median);
    for (const auto& [q, value] : spread.percentiles) out += fmt::format("{:>10.2f}", value);
    out += fmt::format("{:>10.2f}\n", spread.max);
  }
  return out;
}

}  // namespace

std::string report_text(const LoadReport& report, const BenchServeConfig& config) {
  std::string out;
  out += line("arrivals", rate_text(config));
  out += line("requests at once, at most",
              config.max_concurrency
                  ? fmt::format("{} (limit {})", report.peak_concurrency, *config.max_concurrency)
                  : fmt::format("{}", report.peak_concurrency));
  out += line("requests completed", fmt::format("{}", report.completed));
  out += line("requests failed", fmt::format("{}", report.failed));
  for (const auto& [kind, failure] : report.failures) {
    out += line("  " + kind, fmt::format("{}  {}", failure.count, printable(failure.example)));
  }
  if (report.retries > 0) {
    out += line("  sent again",
                fmt::format("{} (the kept connection was closed without an answer)", report.retries));
  }
  out += line("duration", fmt::format("{:.2f} s", report.duration_s));
  out += line("input tokens",
              fmt::format("{}{}", report.input_tokens,
                          report.cached_tokens > 0
                              ? fmt::format(" ({} from the server's cache)", report.cached_tokens)
                              : ""));
  out += line("output tokens", fmt::format("{}", report.output_tokens));
  if (report.uncounted > 0) {
    out += line("  answers without usage",
                fmt::format("{} (counted as planned prompts and as events)", report.uncounted));
  }
  if (report.wrong_length > 0)
    out += line("  answers of another length", fmt::format("{}", report.wrong_length));
  if (config.stream && report.outputs > 0) {
    out += line("  tokens per event", fmt::format("{:.2f}", static_cast<double>(report.output_tokens) /
                                                                static_cast<double>(report.outputs)));
  }
  out += line("request throughput", fmt::format("{:.2f} /s", report.per_second(report.completed)));
  if (!config.slo.empty()) {
    out += line("request goodput", fmt::format("{:.2f} /s ({} of {})", report.per_second(report.good),
                                               report.good, report.completed + report.failed));
  }
  out += line("output token throughput", fmt::format("{:.2f} /s", report.per_second(report.output_tokens)));
  out += line("total token throughput",
              fmt::format("{:.2f} /s", report.per_second(report.input_tokens + report.output_tokens)));
  if (!std::isinf(config.request_rate))
    out += line("latest sending", fmt::format("{:.2f} ms after its time", report.worst_lag_ms));
  out += times_table(report, config);
  return out;
}

}  // namespace omnibus::client
