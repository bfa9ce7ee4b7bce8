// omnibus bench serve: measures a server under load.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "omnibus/base/common/clock.h"
#include "omnibus/client/http_client.h"
#include "omnibus/client/load_generator.h"
#include "omnibus/client/load_report.h"
#include "omnibus/client/printable.h"
#include "omnibus/client/prompt_maker.h"

#include "bench_progress.h"
#include "commands.h"
#include "descriptor_limit.h"

namespace omnibus {
namespace {

constexpr double kSetupTimeout = 60;

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

// The first signal ends the run and leaves its report, the second the program.
void stop_on_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int number) {
      stop_requested = true;
      std::signal(number, SIG_DFL);
    });
  }
  std::signal(SIGPIPE, SIG_IGN);
}

StatusOr<client::Endpoint> endpoint_of(const BenchServeConfig& config) {
  OMNIBUS_ASSIGN_OR_RETURN(client::Endpoint endpoint, client::parse_base_url(config.base_url));
  endpoint.headers = config.headers;
  if (!config.api_key.empty()) endpoint.headers.emplace_back("Authorization", "Bearer " + config.api_key);
  endpoint.ca_certs = config.ca_certs;
  endpoint.insecure = config.insecure;
  return endpoint;
}

// Why /v1/models gave no model, and what helps.
Status no_model(const BenchServeConfig& config, const client::Endpoint& endpoint, int status) {
  const char* hint = "--model names one";
  if (status == 401 || status == 403)
    hint = config.api_key.empty() ? "it wants a key: OPENAI_API_KEY" : "it refuses the key in OPENAI_API_KEY";
  else if (status == 404 && endpoint.prefix.ends_with("/v1"))
    hint = "--base-url goes without /v1";
  return absl::UnavailableError(
      fmt::format("GET {}/v1/models: status {}, and no model is named ({})", endpoint.url(), status, hint));
}

StatusOr<std::string> model_of(const BenchServeConfig& config, const client::Endpoint& endpoint,
                               client::HttpClient& http) {
  if (!config.model.empty()) return config.model;
  OMNIBUS_ASSIGN_OR_RETURN(const client::HttpAnswer answer, http.get("/v1/models"));
  const auto body = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer first("/data/0/id");
  if (answer.status != 200 || !body.contains(first) || !body[first].is_string()) {
    return no_model(config, endpoint, answer.status);
  }
  return body[first].get<std::string>();
}

struct Setup {
  std::string model;
  client::LoadJob warmup, job;
  client::Prompts prompts;
};

// Warm-ups are the plan's first requests: other prompts than those that are measured.
StatusOr<Setup> set_up(const BenchServeConfig& config, const client::Endpoint& endpoint) {
  Setup setup;
  setup.job.endpoint = endpoint;
  client::HttpClient http(setup.job.endpoint, kSetupTimeout);
  OMNIBUS_ASSIGN_OR_RETURN(setup.model, model_of(config, endpoint, http));
  setup.job.path = config.endpoint;
  setup.job.stream = config.stream;
  setup.job.max_concurrency = config.max_concurrency.value_or(0);
  setup.job.request_timeout = static_cast<MonotonicNs>(config.request_timeout_s * 1e9);
  setup.warmup = setup.job;

  client::TokenCounter counter(&http, setup.model, config.backend == BenchBackend::kCompletions);
  setup.job.plan = client::make_load_plan(config, config.num_prompts);
  OMNIBUS_ASSIGN_OR_RETURN(setup.prompts,
                           client::make_prompts(config, setup.job.plan, counter, stop_requested));
  setup.job.bodies = client::request_bodies(config, setup.model, setup.job.plan, setup.prompts.texts);
  if (config.num_warmups > 0) {
    BenchServeConfig warm = config;
    warm.request_rate = std::numeric_limits<double>::infinity();
    warm.seed = config.seed ^ (uint64_t{1} << 62);
    setup.warmup.plan = client::make_load_plan(warm, config.num_warmups);
    OMNIBUS_ASSIGN_OR_RETURN(const auto prompts,
                             client::make_prompts(warm, setup.warmup.plan, counter, stop_requested));
    setup.warmup.bodies = client::request_bodies(warm, setup.model, setup.warmup.plan, prompts.texts);
  }
  return setup;
}

std::string prompts_text(const client::Prompts& prompts) {
  const size_t all = prompts.texts.size();
  if (!prompts.counted) return "a word per token: the server has no /tokenize to count them";
  if (prompts.exact == static_cast<int64_t>(all)) return "exact, by the server's /tokenize";
  return fmt::format("{} of {} exact, by the server's /tokenize", prompts.exact, all);
}

Status cannot_write(const std::string& name) {
  return absl::UnavailableError(fmt::format("cannot write '{}': {}", name, std::strerror(errno)));
}

std::string result_name(const BenchServeConfig& config) {
  if (!config.result_filename.empty()) return config.result_filename;
  return fmt::format("bench-serve-{}.json", wall_clock_seconds());
}

Status save(const BenchServeConfig& config, const Setup& setup, const client::LoadResult& result,
            const client::LoadReport& report, const std::string& name) {
  auto json = client::report_json(report, config, setup.model);
  json["date"] = wall_clock_seconds();
  json["prompts"] = {{"counted", setup.prompts.counted}, {"exact", setup.prompts.exact}};
  if (config.save_detailed) {
    json["monotonic_start"] = static_cast<double>(result.start) * 1e-9;
    json["requests"] = client::records_json(result);
  }
  std::ofstream out(name, std::ios::binary);
  // Messages come from the server: they may be no UTF-8.
  out << json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) return cannot_write(name);
  fmt::print("{:<34}{}\n", "result file", name);
  return {};
}

// Before the run: a long one must not end in a file that cannot be written. What is in it stays until then.
Status check_writable(const std::string& name) {
  std::ofstream out(name, std::ios::binary | std::ios::app);
  if (!out) return cannot_write(name);
  return {};
}

// Messages may quote the server.
int report_printable(const Status& status) {
  return report_failure(Status(status.code(), client::printable(status_message(status))));
}

}  // namespace

int bench_serve_command(const BenchServeConfig& config) {
  stop_on_signals();
  raise_descriptor_limit();
  const auto endpoint = endpoint_of(config);
  if (!endpoint.ok()) {
    report_failure(absl::InvalidArgumentError("--base-url: " + status_message(endpoint.status())));
    return kExitUsage;
  }
  const std::string result_file = result_name(config);
  if (config.save_result) {
    if (const Status writable = check_writable(result_file); !writable.ok()) return report_failure(writable);
  }
  const SteadyClock clock;
  auto setup = set_up(config, *endpoint);
  if (!setup.ok()) return report_printable(setup.status());
  fmt::print("{:<34}{} ({})\n{:<34}{}\n{:<34}{}\n", "server", config.base_url, config.endpoint, "model",
             client::printable(setup->model), "lengths of prompts", prompts_text(setup->prompts));
  std::fflush(stdout);

  BenchProgress progress(config.progress);
  if (!setup->warmup.plan.empty()) {
    progress.begin("warm-up");
    const auto warm = client::run_load(setup->warmup, clock, stop_requested,
                                       [&](const client::LoadProgress& p) { progress.update(p); });
    if (!warm.ok()) return report_printable(warm.status());
  }
  // Where a signal has ended the warm-up, nothing is sent here, and the report says so.
  progress.begin("requests");
  const auto result = client::run_load(setup->job, clock, stop_requested,
                                       [&](const client::LoadProgress& p) { progress.update(p); });
  if (!result.ok()) return report_printable(result.status());
  progress.finish();

  const client::LoadReport report = client::make_report(*result, config);
  fmt::print("{}", client::report_text(report, config));
  if (config.save_result) {
    if (const Status saved = save(config, *setup, *result, report, result_file); !saved.ok())
      return report_failure(saved);
  }
  return report.completed > 0 ? kExitOk : kExitFailure;
}

}  // namespace omnibus
