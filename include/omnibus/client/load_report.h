// What a run amounts to: the definitions of docs/benchmarking.md, which are vLLM's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "omnibus/base/config/bench_options.h"
#include "omnibus/client/load_generator.h"

namespace omnibus::client {

// Of a set of times in milliseconds. All 0 when there are none.
struct Spread {
  int64_t count = 0;
  double mean = 0, median = 0, deviation = 0, min = 0, max = 0;
  std::vector<std::pair<double, double>> percentiles;  // (which, value), as asked for
};

// The q-th percentile (0 to 100) of sorted values, interpolated between neighbours as numpy does by default.
double percentile(const std::vector<double>& sorted, double q);
Spread spread_of(std::vector<double> values, const std::vector<double>& percentiles);

struct Failure {
  int64_t count = 0;
  std::string example;  // the first message
};

struct LoadReport {
  double duration_s = 0;
  int64_t completed = 0, failed = 0, good = 0;
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;  // of completed requests
  int64_t uncounted = 0;     // completed without usage: their tokens are the planned prompt and the events
  int64_t outputs = 0;       // events with text
  int64_t wrong_length = 0;  // completed with another number of tokens than was asked for
  int64_t peak_concurrency = 0, connections = 0, retries = 0;
  double worst_lag_ms = 0;  // longest time between when a request was due and when it was sent
  std::map<std::string, Failure> failures;
  Spread ttft, tpot, itl, e2el;

  double per_second(int64_t count) const {
    return duration_s > 0 ? static_cast<double>(count) / duration_s : 0;
  }
  const Spread& of(BenchMetric metric) const;
};

LoadReport make_report(const LoadResult& result, const BenchServeConfig& config);

// For people: settings that matter, counts, throughput, a table of times, failures by kind.
std::string report_text(const LoadReport& report, const BenchServeConfig& config);

// Keys as in the result files of `vllm bench serve`, and "settings", "failures". Without keys of the API.
nlohmann::ordered_json report_json(const LoadReport& report, const BenchServeConfig& config,
                                   const std::string& model);
// One object a request: --save-detailed.
nlohmann::ordered_json records_json(const LoadResult& result);

}  // namespace omnibus::client
