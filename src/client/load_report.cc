#include "omnibus/client/load_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace omnibus::client {
namespace {

constexpr double kMs = 1e-6;  // milliseconds in a nanosecond

double ms(MonotonicNs ns) { return static_cast<double>(ns) * kMs; }

// Of one completed request.
struct RequestTimes {
  double ttft = 0, e2el = 0;
  double tpot = 0;  // 0 for answers of one token
};

int64_t output_tokens_of(const RequestRecord& record) {
  return record.has_usage ? record.completion_tokens : static_cast<int64_t>(record.outputs.size());
}

RequestTimes times_of(const RequestRecord& record) {
  RequestTimes times;
  times.e2el = ms(record.ended - record.sent);
  // An answer without text (the end came first) has its end as its first token.
  times.ttft = record.outputs.empty() ? times.e2el : ms(record.outputs.front() - record.sent);
  const int64_t tokens = output_tokens_of(record);
  if (tokens > 1) times.tpot = (times.e2el - times.ttft) / static_cast<double>(tokens - 1);
  return times;
}

bool is_good(const RequestTimes& times, const BenchSlo& slo) {
  return (!slo.ttft_ms || times.ttft <= *slo.ttft_ms) && (!slo.tpot_ms || times.tpot <= *slo.tpot_ms) &&
         (!slo.e2el_ms || times.e2el <= *slo.e2el_ms);
}

}  // namespace

double percentile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double place = q / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Spread spread_of(std::vector<double> values, const std::vector<double>& percentiles) {
  std::sort(values.begin(), values.end());
  Spread spread;
  spread.count = static_cast<int64_t>(values.size());
  for (const double q : percentiles) spread.percentiles.emplace_back(q, percentile(values, q));
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  spread.median = percentile(values, 50);
  spread.min = values.front();
  spread.max = values.back();
  return spread;
}

const Spread& LoadReport::of(BenchMetric metric) const {
  switch (metric) {
    case BenchMetric::kTtft:
      return ttft;
    case BenchMetric::kTpot:
      return tpot;
    case BenchMetric::kItl:
      return itl;
    case BenchMetric::kE2el:
      break;
  }
  return e2el;
}

LoadReport make_report(const LoadResult& result, const BenchServeConfig& config) {
  LoadReport report;
  report.duration_s = static_cast<double>(result.duration) * 1e-9;
  report.peak_concurrency = result.peak_concurrency;
  report.connections = result.connections;
  report.retries = result.retries;
  std::vector<double> ttft, tpot, itl, e2el;
  for (const RequestRecord& record : result.records) {
    if (!record.ok()) {
      ++report.failed;
      Failure& failure = report.failures[failure_name(record)];
      if (failure.count++ == 0) failure.example = record.error;
      continue;
    }
    ++report.completed;
    const int64_t tokens = output_tokens_of(record);
    const int64_t planned_input = record.planned.input_len + config.random_prefix_len;
    report.input_tokens += record.has_usage ? record.prompt_tokens : planned_input;
    report.output_tokens += tokens;
    report.cached_tokens += record.cached_tokens;
    report.outputs += static_cast<int64_t>(record.outputs.size());
    report.uncounted += record.has_usage ? 0 : 1;
    report.wrong_length += tokens == record.planned.output_len ? 0 : 1;
    const RequestTimes times = times_of(record);
    e2el.push_back(times.e2el);
    if (config.stream) {
      ttft.push_back(times.ttft);
      if (tokens > 1) tpot.push_back(times.tpot);
      for (size_t i = 1; i < record.outputs.size(); ++i) {
        itl.push_back(ms(record.outputs[i] - record.outputs[i - 1]));
      }
    }
    report.good += !config.slo.empty() && is_good(times, config.slo) ? 1 : 0;
  }
  report.worst_lag_ms = ms(result.worst_lag);
  report.ttft = spread_of(std::move(ttft), config.percentiles);
  report.tpot = spread_of(std::move(tpot), config.percentiles);
  report.itl = spread_of(std::move(itl), config.percentiles);
  report.e2el = spread_of(std::move(e2el), config.percentiles);
  return report;
}

}  // namespace omnibus::client
