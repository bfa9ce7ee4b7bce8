// The options of `omnibus bench serve`. Where vLLM's `vllm bench serve` has an option, it has the same name
// and meaning here.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/base/config/option_set.h"

namespace omnibus {

enum class BenchBackend { kCompletions, kChat };
enum class BenchDataset { kRandom, kShareGpt };
enum class BenchMetric { kTtft, kTpot, kItl, kE2el };

// A request is good when each of these that is set holds; milliseconds.
struct BenchSlo {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;
  bool empty() const { return !ttft_ms && !tpot_ms && !e2el_ms; }
};

struct BenchServeConfig {
  // The server.
  std::string base_url = "http://127.0.0.1:8000";
  BenchBackend backend = BenchBackend::kCompletions;
  std::string endpoint;  // path under base_url; finish_bench_config fills it from the backend
  std::string model;     // "": the first that /v1/models names
  std::vector<std::string> header_texts;                     // as given: "NAME: VALUE"
  std::vector<std::pair<std::string, std::string>> headers;  // made by finish_bench_config
  std::string api_key;                                       // from OPENAI_API_KEY; "": none
  std::string ca_certs;                                      // PEM; "": the system's
  bool insecure = false;                                     // any certificate
  double request_timeout_s = 21600;

  // When requests are sent.
  int32_t num_prompts = 1000;
  int32_t num_warmups = 0;
  double request_rate = std::numeric_limits<double>::infinity();  // per second
  double burstiness = 1;  // shape of the gamma distribution of the gaps; infinite: constant gaps
  std::optional<int32_t> max_concurrency;  // absent: no limit
  uint64_t seed = 0;

  // How long prompts and answers are, in tokens.
  BenchDataset dataset = BenchDataset::kRandom;
  int32_t random_input_len = 1024;
  int32_t random_output_len = 128;
  double random_range_ratio = 0;  // lengths are uniform in [len * (1 - r), len * (1 + r)]
  int32_t random_prefix_len = 0;  // shared tokens in front of each prompt
  int32_t num_prefixes = 1;       // how many different prefixes there are

  // The request.
  bool stream = true;
  bool ignore_eos = false;
  std::optional<double> temperature;
  std::string extra_body;  // JSON object whose fields are added; "": none

  // The report.
  std::vector<std::string> metric_names = {"ttft,tpot,itl,e2el"};
  std::vector<BenchMetric> metrics;  // made by finish_bench_config, as are `percentiles` and `slo`
  std::vector<std::string> percentile_texts = {"90,95,99"};
  std::vector<double> percentiles;
  std::vector<std::string> goodput_texts;
  BenchSlo slo;
  bool progress = true;
  bool save_result = false;
  bool save_detailed = false;
  std::string result_filename;
};

void declare_bench_options(OptionSet& options, BenchServeConfig& config);

// Checks what no single option can, and fills what is made from several. `env` gives OPENAI_API_KEY.
Status finish_bench_config(BenchServeConfig& config, const EnvLookup& env);

// "ttft", "tpot", "itl", "e2el".
const char* name_of(BenchMetric metric);

}  // namespace omnibus
