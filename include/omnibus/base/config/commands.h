// The commands of omnibus and their frozen configs. Filled once by parse_command_line, passed by const
// reference from then on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/status.h"
#include "omnibus/base/config/bench_options.h"
#include "omnibus/base/config/option_set.h"

namespace omnibus {

// The model that serve and run take when none is named (model_store resolves it).
inline constexpr char kDefaultModel[] = "smollm2:135m";

enum class NumericsOption { kFast, kF32 };
enum class ReasoningFieldOption { kBoth, kReasoningContent, kReasoning };
enum class SchedulingPolicyOption { kFcfs, kPriority };
enum class CpuIsaOption { kAuto, kGeneric, kAvx2, kAvx512 };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

// Whose sampling parameters hold where a request leaves one out.
enum class GenerationConfigOption { kAuto, kNone };  // the model's own; the API's

// What an engine is made of; shared by serve and run.
struct EngineOptions {
  std::optional<int32_t> max_model_len;           // tokens; absent: the model's own
  int32_t max_num_seqs = 32;                      // requests running at once
  std::optional<int32_t> max_num_batched_tokens;  // tokens per step; absent: batched_tokens()
  NumericsOption numerics = NumericsOption::kFast;
  CpuIsaOption cpu_isa = CpuIsaOption::kAuto;
  int32_t threads = 0;              // compute threads; 0: one per core
  int64_t kv_cache_memory_mib = 0;  // 0: from the memory limit and the two maxima above
  int32_t tensor_parallel_size = 1;
  int32_t pipeline_parallel_size = 1;
  std::optional<uint64_t> seed;  // seeds the draw of requests that bring none; absent: from the system
  int32_t max_logprobs = 20;     // most alternatives a request may ask for; -1: all
  SchedulingPolicyOption scheduling_policy = SchedulingPolicyOption::kFcfs;
  bool enable_prefix_caching = true;
  std::optional<bool> async_scheduling;  // absent: where there are more than two cores
  double step_timeout_s = 0;             // 0: from the predicted cost of steps

  // The token budget of a step: as asked, else 512, or one token for each request if these are more.
  int32_t batched_tokens() const { return max_num_batched_tokens.value_or(std::max(512, max_num_seqs)); }
};

// A key that clients may send, and the name under which it appears in logs and keeps its cache apart.
struct ApiKey {
  std::string name;
  std::string key;
};

// The HTTP listener: where it is, who may reach it, its limits. Times in seconds.
struct HttpConfig {
  std::string host = "127.0.0.1";
  int32_t port = 8000;                 // 0: any free port
  std::optional<int32_t> ollama_port;  // a second listener, on loopback; 0: any free port
  std::optional<int32_t> grpc_port;    // gRPC, on `host`; 0: any free port
  // Where admin routes are: "auto" (a Unix socket under OMNIBUS_HOME), "off", "unix:PATH", or "HOST:PORT" on
  // loopback, which needs admin_api_keys.
  std::string admin_listen = "auto";
  std::vector<std::string> admin_api_keys;
  std::vector<std::string> allowed_hosts;    // names a request may be addressed to, beside those of loopback
  std::vector<std::string> allowed_origins;  // web pages that may call; "*": all
  std::string ssl_certfile;                  // PEM chain; "": plain HTTP
  std::string ssl_keyfile;                   // PEM key; "": in ssl_certfile
  std::string ssl_ca_certs;                  // PEM; not "": clients must show a certificate that these signed
  int64_t max_body_bytes = 32 << 20;
  int32_t max_connections = 10'000;
  double header_timeout_s = 10;
  double body_timeout_s = 30;  // and 1 s more per 64,000 bytes
  double keep_alive_timeout_s = 75;
  double stall_timeout_s = 30;  // a reader that takes no byte for so long is gone
  double drain_delay_s = 0;     // between SIGTERM and the first refusal
  double drain_timeout_s = 30;
};

struct ServeConfig {
  std::string model = kDefaultModel;
  EngineOptions engine;
  HttpConfig http;
  LogConfig log;
  std::vector<std::string> served_model_names;  // empty: the model's own name
  std::vector<std::string> api_keys;            // as given by --api-key
  std::string api_key_file;
  std::vector<ApiKey> keys;           // all of them, with names, no two alike: made by finish_serve_config
  std::vector<std::string> warnings;  // what finish_serve_config found odd, to be logged
  bool allow_unauthenticated = false;
  int32_t max_waiting_requests = 256;  // more get 429
  int64_t max_waiting_tokens = 0;  // prompt tokens open beside one KV capacity of them; 0: four capacities
  // "off", "equal", or "NAME=WEIGHT,...": shares of the keys' names, 1 for those that are not listed.
  std::string fair_sharing = "off";
  std::map<std::string, double> tenant_weights;  // those that it lists: made by finish_serve_config
  bool any_model = false;                        // any "model" in a request means the one that is served
  bool strict_fields = false;                    // an unknown field of a request is 400
  bool trust_request_chat_template = false;
  bool prefill_assistant = false;  // an assistant message at the end of a chat is gone on with
  GenerationConfigOption generation_config = GenerationConfigOption::kAuto;
  std::string chat_template_file;  // "" : the model's own
  std::string reasoning_parser = "auto";
  ReasoningFieldOption reasoning_field = ReasoningFieldOption::kBoth;
  std::string default_chat_template_kwargs;   // JSON object; "": none
  std::optional<int32_t> default_max_tokens;  // of requests that set no limit; absent: the API's own default
  bool slots = true;                          // GET /slots answers
};

struct RunConfig {
  std::string model = kDefaultModel;
  std::vector<std::string> prompt_words;  // empty: a conversation in the terminal
  std::string system;
  std::optional<double> temperature;  // absent: the model's or the program's default
  std::optional<double> top_p;
  std::optional<int32_t> top_k;
  std::optional<int32_t> max_tokens;
  // engine.seed is also the seed of the answers; there is one sequence at a time, whatever max_num_seqs says.
  EngineOptions engine;
  LogConfig log{.level = LogLevel::kWarning};  // a conversation is no place for news
  std::string chat_template_file;
};

struct PullConfig {
  std::string model = kDefaultModel;
};
struct ListConfig {};
struct ShowConfig {
  std::string model;
};
struct VersionConfig {};
// --help, or no more than that: print `text` on stdout, exit 0.
struct HelpConfig {
  std::string text;
};

using ParsedCommand = std::variant<ServeConfig, RunConfig, BenchServeConfig, PullConfig, ListConfig,
                                   ShowConfig, VersionConfig, HelpConfig>;

// `args` without the program's name. Every error is INVALID_ARGUMENT and names the flag, variable or file
// line: print it on stderr, exit 2.
StatusOr<ParsedCommand> parse_command_line(std::span<const std::string> args,
                                           const EnvLookup& env = process_environment());

// Those of `names` (variables of the environment) that begin with OMNIBUS_ and that no command knows.
std::vector<std::string> unknown_variables(std::span<const std::string> names);

// The options of `serve`, for programs that serve with something added (the replay server): declare into an
// own OptionSet, add to it, parse_options, then finish_serve_config.
void declare_options(OptionSet& options, ServeConfig& config);
// Reads --api-key-file, names the keys ("key1", "key2" where none is given), and checks what no single option
// can: shares, workers that do not exist yet, a bind beyond loopback without a key, feature pairs.
Status finish_serve_config(ServeConfig& config);

// The flags of `serve` ("--port") whose values differ.
std::vector<std::string> changed_options(const ServeConfig& one, const ServeConfig& other);

// The features of configs/feature_pairs.toml that an engine started with these options has.
// parse_command_line and finish_serve_config refuse options whose features are not all allowed together.
std::vector<std::string> enabled_features(const EngineOptions& engine);
std::vector<std::string> enabled_features(const ServeConfig& config);

// True for 127.0.0.0/8, ::1 and "localhost".
bool is_loopback_host(const std::string& host);

}  // namespace omnibus
