#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

#include "omnibus/base/common/log.h"
#include "omnibus/cli/serve.h"
#include "omnibus/server/docs/docs_routes.h"
#include "omnibus/server/http/http_server.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/server/llama_cpp/llama_cpp_api.h"
#include "omnibus/server/ollama/ollama_api.h"
#include "omnibus/server/openai/openai_api.h"
#include "omnibus/server/render_error.h"
#include "omnibus/store/model_store/model_store.h"

#include "commands.h"
#include "progress_bar.h"
#include "stop_signals.h"
#include "text_layout.h"
#include "version.h"

namespace omnibus {
namespace {

constexpr char kOllamaHost[] = "127.0.0.1";
constexpr auto kPoll = std::chrono::milliseconds(200);
constexpr auto kDrainPoll = std::chrono::milliseconds(20);
// After the drain: for the last bytes of answers.
constexpr auto kFlushLimit = std::chrono::milliseconds(1000);

std::chrono::milliseconds to_ms(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

HttpServerConfig http_config(const HttpConfig& http) {
  HttpServerConfig config;
  config.host = http.host;
  config.port = static_cast<uint16_t>(http.port);
  config.io_threads = std::clamp(cores() / 4, 1, 4);
  config.max_connections = http.max_connections;
  config.max_body_bytes = static_cast<uint64_t>(http.max_body_bytes);
  config.header_timeout = to_ms(http.header_timeout_s);
  config.body_timeout = to_ms(http.body_timeout_s);
  config.idle_timeout = to_ms(http.keep_alive_timeout_s);
  config.allowed_hosts = http.allowed_hosts;
  config.allowed_origins = http.allowed_origins;
  config.tls = {.certificate = http.ssl_certfile, .key = http.ssl_keyfile, .client_ca = http.ssl_ca_certs};
  config.render_error = render_error;
  return config;
}

// The second listener: the same routes and keys, on loopback only, without TLS.
HttpServerConfig ollama_http_config(const HttpConfig& http) {
  HttpServerConfig config = http_config(http);
  config.host = kOllamaHost;
  config.port = static_cast<uint16_t>(*http.ollama_port);
  config.tls = {};
  return config;
}

OllamaConfig ollama_config(const ServedModel& model) {
  OllamaConfig config;
  config.store_home = ModelStore::default_home(process_environment()).value_or("");
  config.model_path = model.path;
  config.model_digest = model.digest;
  return config;
}

ReasoningField reasoning_field_of(ReasoningFieldOption option) {
  switch (option) {
    case ReasoningFieldOption::kReasoningContent:
      return ReasoningField::kReasoningContent;
    case ReasoningFieldOption::kReasoning:
      return ReasoningField::kReasoning;
    default:
      return ReasoningField::kBoth;
  }
}

StatusOr<Json> template_kwargs(const std::string& text) {
  if (text.empty()) return Json();
  auto kwargs = parse_json(text);
  if (kwargs.ok() && kwargs->is_object()) return kwargs;
  return absl::InvalidArgumentError(
      fmt::format("--default-chat-template-kwargs: {}",
                  kwargs.ok() ? "must be a JSON object" : status_message(kwargs.status())));
}

// No request could ask for another: JSON is UTF-8.
Status check_served_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string shown = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (Json::parse(shown) == name) continue;
    return absl::InvalidArgumentError(fmt::format("--served-model-name: {} is not UTF-8", shown));
  }
  return {};
}

StatusOr<ApiConfig> api_config(const ServeConfig& config, const ServedModel& model) {
  ApiConfig api;
  OMNIBUS_RETURN_IF_ERROR(check_served_names(config.served_model_names));
  OMNIBUS_ASSIGN_OR_RETURN(api.default_template_kwargs, template_kwargs(config.default_chat_template_kwargs));
  api.default_max_tokens = config.default_max_tokens.value_or(0);
  api.slots = config.slots;
  api.model_file = std::filesystem::path(model.path).filename().string();
  api.model_names = config.served_model_names;
  if (api.model_names.empty()) api.model_names = {model.name};
  api.any_model = config.any_model;
  api.strict_fields = config.strict_fields;
  api.trust_request_chat_template = config.trust_request_chat_template;
  api.prefill_assistant = config.prefill_assistant;
  api.reasoning_parser = config.reasoning_parser;
  api.reasoning_field = reasoning_field_of(config.reasoning_field);
  api.max_logprobs = config.engine.max_logprobs;
  if (config.generation_config == GenerationConfigOption::kAuto) api.defaults = model.defaults;
  api.text_threads = std::clamp(cores() / 4, 1, 8);
  api.seed = config.engine.seed;
  api.version = version();
  api.fingerprint = std::string("fp_omnibus_") + version();
  api.parameters = model.parameters;
  api.file_bytes = model.file_bytes;
  return api;
}

std::string url_of(const HttpConfig& http, uint16_t port) {
  const std::string& host = http.host;
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", http.ssl_certfile.empty() ? "http" : "https", v6 ? "[" : "", host,
                     v6 ? "]" : "", port);
}

struct Listeners {
  std::unique_ptr<HttpServer> main, ollama;  // ollama: may be null
  std::string main_url;

  void begin_drain() const {
    main->begin_drain();
    if (ollama) ollama->begin_drain();
  }
  void stop() const {
    main->stop(kFlushLimit);
    if (ollama) ollama->stop(kFlushLimit);
  }
};

void print_start_table(const AsyncEngine& engine, const ServedModel& model, const Listeners& listeners) {
  const EngineConfig& limits = engine.config();
  const MemoryPlan& plan = engine.memory_plan();
  std::vector<std::vector<std::string>> rows = {
      {"omnibus", version()},
      {"model", fmt::format("{} ({})", model.name, model.description)},
      {"context", fmt::format("{} tokens, up to {} requests at once, {} tokens a step", limits.max_model_len,
                              limits.max_num_seqs, limits.max_num_batched_tokens)}};
  for (const ArenaPlan& arena : plan.arenas) {
    rows.push_back({"memory", fmt::format("{:>12}  {}{}", mebibytes(arena.bytes), arena.name,
                                          arena.note.empty() ? "" : " (" + arena.note + ")")});
  }
  std::string limit;
  if (plan.memory_limit > 0) limit = " of " + mebibytes(plan.memory_limit);
  rows.push_back({"", fmt::format("{:>12}  in all{}", mebibytes(plan.total()), limit)});
  rows.push_back({"KV cache", fmt::format("{} blocks of {} tokens", plan.kv.num_blocks, kTokensPerBlock)});
  rows.push_back({"address", listeners.main_url});
  if (listeners.ollama)
    rows.push_back({"Ollama", fmt::format("http://{}:{}", kOllamaHost, listeners.ollama->port())});
  const std::string table = format_table(rows);
  std::fputs(table.c_str(), stdout);
  std::fflush(stdout);
}

// As many connections as the system lets us have: soft limits are often 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Until a signal, or until the engine is beyond help: the process is then the unit that restarts.
bool wait_for_stop(const StopSignals& signals, const AsyncEngine& engine) {
  while (!signals.wait_for(kPoll)) {
    const EngineHealth health = engine.health();
    if (health.trouble != EngineTrouble::kFailed) continue;
    log_error("the engine ended: {}", health.reason);
    return false;
  }
  return true;
}

[[noreturn]] void leave_at_once(int signal) {
  log_warning("second signal: leaving at once");
  std::_Exit(128 + signal);
}

void drain(const StopSignals& signals, AsyncEngine& engine, const Listeners& listeners,
           std::chrono::milliseconds limit) {
  log_info("draining: {} running, {} waiting, at most {} s", engine.health().running, engine.health().waiting,
           static_cast<double>(limit.count()) / 1000);
  listeners.begin_drain();
  auto done = std::async(std::launch::async, [&] {
    if (!engine.drain(limit)) log_warning("drain: the time is up, the rest was aborted");
    listeners.stop();
  });
  while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (const auto signal = signals.wait_for(kDrainPoll)) leave_at_once(*signal);
  }
}

}  // namespace

int serve_model(const ServeConfig& config, ServedModel model) {
  const StopSignals signals;
  const SteadyClock clock;
  MetricsRegistry metrics;
  raise_descriptor_limit();
  for (const std::string& warning : config.warnings) log_warning("{}", warning);
  auto dialect = dialect_of(config.reasoning_parser, model);
  if (!dialect.ok()) return report_failure(dialect.status());
  auto sharing = parse_fair_sharing(config.fair_sharing);
  if (!sharing.ok()) return report_failure(sharing.status());
  model.engine.max_waiting_requests = config.max_waiting_requests;
  model.engine.max_waiting_tokens = config.max_waiting_tokens;
  model.engine.fair_sharing = *std::move(sharing);
  model.engine.text_threads = std::clamp(cores() / 4, 1, 8);
  auto api = api_config(config, model);
  if (!api.ok()) return report_failure(api.status());
  StatusOr<std::unique_ptr<AsyncEngine>> engine = nullptr;
  {
    const ExitOnStopSignal while_loading;
    engine = start_engine(model, &metrics, &clock);
  }
  if (!engine.ok()) return report_failure(engine.status());

  api->dialect = *std::move(dialect);
  const DocsConfig docs{.version = api->version,
                        .model = api->model_names.front(),
                        .keyed = !config.keys.empty(),
                        .loopback_bind = is_loopback_host(config.http.host)};
  auto core = ApiCore::create(*std::move(api), engine->get(), model.chat_template, &metrics);
  RouteTable routes;
  add_openai_routes(*core, routes);
  add_llama_cpp_routes(*core, routes);
  add_ollama_routes(*core, ollama_config(model), routes);
  add_docs_routes(docs, routes);
  const Authenticator auth(config.keys, docs.loopback_bind);
  const Authenticator loopback_auth(config.keys, /*loopback_bind=*/true);
  Listeners listeners;
  auto server = HttpServer::start(http_config(config.http), &routes, &auth, &metrics);
  if (!server.ok()) return report_failure(server.status());
  listeners.main = *std::move(server);
  listeners.main_url = url_of(config.http, listeners.main->port());
  if (config.http.ollama_port) {
    auto second = HttpServer::start(ollama_http_config(config.http), &routes, &loopback_auth, &metrics);
    if (!second.ok()) return report_failure(second.status());
    listeners.ollama = *std::move(second);
  }
  print_start_table(**engine, model, listeners);

  if (!wait_for_stop(signals, **engine)) {
    listeners.stop();
    return kExitFailure;
  }
  drain(signals, **engine, listeners, to_ms(config.http.drain_timeout_s));
  log_info("stopped");
  return kExitOk;
}

// Before the long work of loading: both listeners can be had.
Status check_listeners(const HttpConfig& http) {
  OMNIBUS_RETURN_IF_ERROR(HttpServer::check(http_config(http)));
  if (!http.ollama_port) return {};
  // An address that takes loopback's connections, too, leaves that port to nobody else.
  const bool covers_loopback =
      http.host == kOllamaHost || http.host == "localhost" || http.host == "0.0.0.0" || http.host == "::";
  if (covers_loopback && http.port != 0 && *http.ollama_port == http.port) {
    return absl::InvalidArgumentError(
        fmt::format("--ollama-port: {} is --port already; both have the same routes", http.port));
  }
  return HttpServer::check(ollama_http_config(http));
}

int serve_command(const ServeConfig& config) {
  const StopSignals signals;  // blocked before the first thread exists
  const Status listener = check_listeners(config.http);
  if (!listener.ok()) return report_failure(listener);
  ProgressBar bar("loading");
  StatusOr<ServedModel> model = ServedModel();
  {
    const ExitOnStopSignal while_opening;
    model = open_model(config.model, config.engine, config.chat_template_file,
                       [&bar](int64_t done, int64_t total) { bar.update(done, total); });
  }
  if (!model.ok()) return report_failure(model.status());
  return serve_model(config, *std::move(model));
}

}  // namespace omnibus
