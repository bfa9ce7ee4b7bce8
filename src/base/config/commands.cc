#include "omnibus/base/config/commands.h"

#include <array>
#include <cmath>

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include "omnibus/base/config/feature_pairs.h"

#include "security_options.h"

namespace omnibus {
namespace {

constexpr int64_t kMany = 1 << 30;
// No route takes more (kGenerationBodyBytes in route_table.h), so a larger limit would promise what is not
// kept.
constexpr int64_t kMaxBodyBytes = 32 << 20;

void declare_log(OptionSet& options, LogConfig& log) {
  options.begin_group("Log");
  options.add_choice("log-level", log.level,
                     {{"debug", LogLevel::kDebug},
                      {"info", LogLevel::kInfo},
                      {"warning", LogLevel::kWarning},
                      {"error", LogLevel::kError}},
                     "Least severe line that is written to stderr");
  options.add_choice("log-format", log.format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                     "One line per event, as text or as a JSON object");
}

void declare_engine(OptionSet& options, EngineOptions& engine, const char* budget_help) {
  options.begin_group("Engine");
  options.add("max-model-len", engine.max_model_len, 1, kMany,
              "Longest prompt plus answer in tokens (default: the model's own)");
  options.add("max-num-batched-tokens", engine.max_num_batched_tokens, 1, kMany, budget_help);
  options.add_choice("numerics", engine.numerics,
                     {{"fast", NumericsOption::kFast}, {"f32", NumericsOption::kF32}},
                     "fast: 8-bit activations; f32: float activations and cache");
  options.add("threads", engine.threads, 0, 4096, "Compute threads; 0: one per core");
  options.add_choice("cpu-isa", engine.cpu_isa,
                     {{"auto", CpuIsaOption::kAuto},
                      {"generic", CpuIsaOption::kGeneric},
                      {"avx2", CpuIsaOption::kAvx2},
                      {"avx512", CpuIsaOption::kAvx512}},
                     "Instruction set of the kernels; auto: the best this machine has");
  options.add("kv-cache-memory", engine.kv_cache_memory_mib, 0, int64_t{1} << 30,
              "Memory for the KV cache in MiB; 0: 25 % of the memory limit, and no more than can be used");
  options.add("tensor-parallel-size", engine.tensor_parallel_size, 1, 4096, "Devices that share each layer");
  options.add("pipeline-parallel-size", engine.pipeline_parallel_size, 1, 4096, "Stages of layers");
  options.add("seed", engine.seed,
              "The n-th request without a seed draws the same in each run of the server (default: random)");
}

// What concerns an engine of many requests.
void declare_engine_for_many(OptionSet& options, EngineOptions& engine) {
  declare_engine(
      options, engine,
      "Tokens computed in one step, at least --max-num-seqs (default: 512, or --max-num-seqs if larger)");
  options.add("max-num-seqs", engine.max_num_seqs, 1, 65536, "Requests that run at the same time");
  options.add("max-logprobs", engine.max_logprobs, -1, 1 << 20,
              "Most alternatives per token a request may ask for; -1: the whole vocabulary");
  options.add_choice(
      "scheduling-policy", engine.scheduling_policy,
      {{"fcfs", SchedulingPolicyOption::kFcfs}, {"priority", SchedulingPolicyOption::kPriority}},
      "Who is next: first come, first served; or the lowest `priority` of the requests");
  options.add("enable-prefix-caching", engine.enable_prefix_caching,
              "Reuse the KV cache of prompts that begin alike");
  options.add("async-scheduling", engine.async_scheduling,
              "Plan the next step while the current one runs (default: with more than two cores)");
  options.add("step-timeout", engine.step_timeout_s, 0, 86400,
              "Seconds after which a step counts as stalled; 0: from its predicted cost");
}

void declare_http(OptionSet& options, HttpConfig& http) {
  options.begin_group("Listener");
  options.add("host", http.host, "ADDRESS", "Address to listen on");
  options.add("port", http.port, 0, 65535, "Port to listen on; 0: any free one");
  options.add(
      "ollama-port", http.ollama_port, 0, 65535,
      "Second port, on 127.0.0.1, for Ollama's clients (theirs is 11434); 0: any free one (default: off)");
  options.add("grpc-port", http.grpc_port, 0, 65535,
              "Port for gRPC, on the same address; 0: any free one (default: off)");
  options.add(
      "admin-listen", http.admin_listen, "WHERE",
      "Admin routes: auto (a Unix socket under OMNIBUS_HOME), off, unix:PATH, or HOST:PORT on loopback "
      "with --admin-api-key");
  options.add_list("admin-api-key", http.admin_api_keys, "KEY", "Key for admin routes over TCP; repeatable");
  options.add("max-body-bytes", http.max_body_bytes, 1024, kMaxBodyBytes,
              "Largest request body; routes that need less take less");
  options.add("max-connections", http.max_connections, 1, 1 << 20, "Open connections; more are turned away");
  options.add("header-timeout", http.header_timeout_s, 0.01, 86400, "Seconds a client has for its headers");
  options.add("body-timeout", http.body_timeout_s, 0.01, 86400,
              "Seconds a client has for its body, and one more per 64,000 bytes of it");
  options.add("keep-alive-timeout", http.keep_alive_timeout_s, 0.01, 86400,
              "Seconds an idle connection stays");
  options.add("stall-timeout", http.stall_timeout_s, 0.01, 86400,
              "Seconds after which a reader that takes no byte of its answer is dropped");
  options.add("drain-delay", http.drain_delay_s, 0, 86400,
              "Seconds between SIGTERM and the first refusal, for slow routers");
  options.add("drain-timeout", http.drain_timeout_s, 0, 86400,
              "Seconds that running requests have to finish after SIGTERM");
}

void declare_run(OptionSet& options, RunConfig& config) {
  options.add_positional("MODEL", config.model, "Path of a GGUF file, name in the store, or alias");
  options.add_words("PROMPT", config.prompt_words, "Question to answer; without one: a conversation");
  options.begin_group("Answer");
  options.add("system", config.system, "TEXT", "System message");
  options.add("temperature", config.temperature, 0, 2, "0: always the likeliest token");
  options.add("top-p", config.top_p, 0, 1, "Keep the likeliest tokens up to this sum of probabilities");
  options.add("top-k", config.top_k, -1, kMany, "Keep this many of the likeliest tokens; 0 or -1: all");
  options.add("max-tokens", config.max_tokens, 1, kMany, "Longest answer (default: what the context holds)");
  options.add("chat-template", config.chat_template_file, "FILE",
              "Jinja template in place of the model's own");
  declare_engine(options, config.engine, "Tokens computed in one step (default: 512)");
  declare_log(options, config.log);
}

Status check_engine(const EngineOptions& engine) {
  const std::array<std::pair<const char*, int32_t>, 2> sizes = {
      {{"--tensor-parallel-size", engine.tensor_parallel_size},
       {"--pipeline-parallel-size", engine.pipeline_parallel_size}}};
  for (const auto& [flag, size] : sizes) {
    if (size == 1) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: {} needs worker processes, which do not exist yet: only 1 is possible", flag, size));
  }
  return check_feature_pairs(enabled_features(engine));
}

Status check_token_budget(const EngineOptions& engine) {
  if (engine.batched_tokens() < engine.max_num_seqs) {
    return absl::InvalidArgumentError(fmt::format(
        "--max-num-batched-tokens: {} is less than --max-num-seqs, {}: a step holds a token of each "
        "running request",
        engine.batched_tokens(), engine.max_num_seqs));
  }
  return absl::OkStatus();
}

// Of --fair-sharing.
StatusOr<std::map<std::string, double>> parse_weights(const std::string& shares) {
  std::map<std::string, double> weights;
  if (shares == "off" || shares == "equal") return weights;
  const std::vector<std::string> parts = absl::StrSplit(shares, ',');
  for (const std::string& part : parts) {
    const size_t equals = part.rfind('=');
    double weight = 0;
    if (equals == 0 || equals == std::string::npos || !absl::SimpleAtod(part.substr(equals + 1), &weight) ||
        !(weight > 0) || !std::isfinite(weight))
      return absl::InvalidArgumentError(fmt::format(
          "--fair-sharing: '{}' is not NAME=WEIGHT with a positive weight; or give 'off' or 'equal'", part));
    const std::string name = part.substr(0, equals);
    if (!weights.emplace(name, weight).second)
      return absl::InvalidArgumentError(fmt::format("--fair-sharing: '{}' stands there twice", name));
  }
  return weights;
}

}  // namespace

std::vector<std::string> enabled_features(const EngineOptions& engine) {
  // Those without a flag are always on: any request may ask for them, any load may bring them about.
  std::vector<std::string> features = {"chunked_prefill", "preemption",       "logprobs",
                                       "prompt_logprobs", "parallel_choices", "stop_strings"};
  if (engine.numerics == NumericsOption::kF32) features.emplace_back("numerics_f32");
  if (engine.enable_prefix_caching) features.emplace_back("prefix_caching");
  if (engine.async_scheduling.value_or(true)) features.emplace_back("async_scheduling");
  if (engine.scheduling_policy == SchedulingPolicyOption::kPriority)
    features.emplace_back("priority_scheduling");
  return features;
}

std::vector<std::string> enabled_features(const ServeConfig& config) {
  auto features = enabled_features(config.engine);
  if (config.fair_sharing != "off") features.emplace_back("fair_sharing");
  return features;
}

void declare_options(OptionSet& options, ServeConfig& config) {
  options.add_positional("MODEL", config.model, "Path of a GGUF file, name in the store, or alias");
  declare_http(options, config.http);
  declare_security(options, config);
  options.begin_group("API");
  options.add_list("served-model-name", config.served_model_names, "NAME",
                   "Name the model has in the API; repeatable (default: its own)");
  options.add("max-waiting-requests", config.max_waiting_requests, 0, kMany,
              "Requests that may wait for their turn; more get 429");
  options.add(
      "max-waiting-tokens", config.max_waiting_tokens, 0, int64_t{1} << 40,
      "Prompt tokens open at a time beside as many as the KV cache holds; more get 429; 0: four times that");
  options.add("fair-sharing", config.fair_sharing, "SHARES",
              "Tokens shared between API keys: off, equal, or NAME=WEIGHT,... (others have 1)");
  options.add("any-model", config.any_model, "Answer for any model name that a request may bring");
  options.add("strict-fields", config.strict_fields, "Refuse requests with unknown fields");
  options.add("trust-request-chat-template", config.trust_request_chat_template,
              "Let requests bring a chat template of their own");
  options.add("prefill-assistant", config.prefill_assistant,
              "Go on with an assistant message at the end of a chat instead of beginning a new answer");
  options.add_choice("generation-config", config.generation_config,
                     {{"auto", GenerationConfigOption::kAuto},
                      {"none", GenerationConfigOption::kNone},
                      {"vllm", GenerationConfigOption::kNone}},
                     "Sampling parameters of requests that bring none; auto: the model's own; none or vllm: "
                     "the API's");
  options.add("chat-template", config.chat_template_file, "FILE",
              "Jinja template in place of the model's own");
  options.add("reasoning-parser", config.reasoning_parser, "NAME",
              "Family whose marks split reasoning from answers; auto: by the chat template; none: no split");
  options.add_choice("reasoning-field", config.reasoning_field,
                     {{"both", ReasoningFieldOption::kBoth},
                      {"reasoning_content", ReasoningFieldOption::kReasoningContent},
                      {"reasoning", ReasoningFieldOption::kReasoning}},
                     "Name of the reasoning in answers of /v1/chat/completions");
  options.add("default-chat-template-kwargs", config.default_chat_template_kwargs, "JSON",
              "Variables for the chat template that requests may override, as an object");
  options.add("default-max-tokens", config.default_max_tokens, 1, kMany,
              "Longest answer to a request that sets no limit (default: the API's own)");
  options.add("slots", config.slots, "Answer GET /slots with how many requests run");
  declare_engine_for_many(options, config.engine);
  declare_log(options, config.log);
}

Status finish_serve_config(ServeConfig& config) {
  OMNIBUS_RETURN_IF_ERROR(check_engine(config.engine));
  OMNIBUS_RETURN_IF_ERROR(check_feature_pairs(enabled_features(config)));
  OMNIBUS_RETURN_IF_ERROR(check_token_budget(config.engine));
  OMNIBUS_ASSIGN_OR_RETURN(config.tenant_weights, parse_weights(config.fair_sharing));
  return finish_security(config);
}

std::vector<std::string> changed_options(const ServeConfig& one, const ServeConfig& other) {
  ServeConfig left = one, right = other;
  OptionSet left_options("serve", ""), right_options("serve", "");
  declare_options(left_options, left);
  declare_options(right_options, right);
  std::vector<std::string> changed;
  for (size_t i = 0; i < left_options.options().size(); ++i) {
    const Option& option = left_options.options()[i];
    if (option.read() == right_options.options()[i].read()) continue;
    changed.push_back(option.kind == Option::Kind::kPositional ? option.name : "--" + option.name);
  }
  return changed;
}

namespace {

// Every command with its options, and the configs that they fill.
struct AllCommands {
  AllCommands() {
    declare_options(serve, serve_config);
    declare_run(run, run_config);
    declare_bench_options(bench_serve, bench_serve_config);
    pull.add_positional("MODEL", pull_config.model, "Name of the model");
    show.add_positional("MODEL", show_config.model, "Path of a GGUF file, name in the store, or alias");
  }
  AllCommands(const AllCommands&) = delete;  // the options point into the configs
  AllCommands& operator=(const AllCommands&) = delete;

  ServeConfig serve_config;
  RunConfig run_config;
  BenchServeConfig bench_serve_config;
  PullConfig pull_config;
  ShowConfig show_config;
  OptionSet serve{"serve", "Serve a model over HTTP (the APIs of OpenAI, Ollama and llama.cpp)"};
  OptionSet run{"run", "Talk to a model in the terminal"};
  OptionSet bench_serve{"bench serve", "Measure a server under load (any that has OpenAI's API)"};
  OptionSet pull{"pull", "Fetch a model into the store"};
  OptionSet list{"list", "List the models in the store"};
  OptionSet show{"show", "Describe a model"};
  OptionSet version{"version", "Print the version"};
  std::array<OptionSet*, 7> sets = {&serve, &run, &bench_serve, &pull, &list, &show, &version};
};

Status check_prompt_words(const RunConfig& config) {
  if (config.prompt_words.empty()) return {};
  for (const std::string& word : config.prompt_words) {
    if (word.find_first_not_of(" \t\r\n") != std::string::npos) return {};
  }
  return absl::InvalidArgumentError("PROMPT: is empty (leave it out for a conversation)");
}

}  // namespace

std::vector<std::string> unknown_variables(std::span<const std::string> names) {
  const AllCommands commands;
  return unknown_variables(commands.sets, names);
}

StatusOr<ParsedCommand> parse_command_line(std::span<const std::string> args, const EnvLookup& env) {
  AllCommands commands;
  if (args.size() == 1 && (args[0] == "--version" || args[0] == "-V")) return VersionConfig{};
  OMNIBUS_ASSIGN_OR_RETURN(
      const auto result,
      parse_options({"omnibus", "omnibus: an LLM inference server", true}, commands.sets, args, env));
  if (!result.help.empty()) return HelpConfig{result.help};
  if (result.chosen == &commands.serve) {
    OMNIBUS_RETURN_IF_ERROR(finish_serve_config(commands.serve_config));
    return commands.serve_config;
  }
  if (result.chosen == &commands.run) {
    OMNIBUS_RETURN_IF_ERROR(check_engine(commands.run_config.engine));
    OMNIBUS_RETURN_IF_ERROR(check_prompt_words(commands.run_config));
    return commands.run_config;
  }
  if (result.chosen == &commands.bench_serve) {
    OMNIBUS_RETURN_IF_ERROR(finish_bench_config(commands.bench_serve_config, env));
    return commands.bench_serve_config;
  }
  if (result.chosen == &commands.pull) return commands.pull_config;
  if (result.chosen == &commands.list) return ListConfig{};
  if (result.chosen == &commands.version) return VersionConfig{};
  if (commands.show_config.model.empty()) return absl::InvalidArgumentError("show: MODEL is missing");
  return commands.show_config;
}

}  // namespace omnibus
