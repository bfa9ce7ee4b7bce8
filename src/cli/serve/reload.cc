#include "reload.h"

#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"

#include "engine_limits.h"

namespace omnibus {
namespace {

constexpr char kReloads[] = "omnibus_config_reloads_total";
constexpr char kReloadsHelp[] = "Reloads of the configuration";

}  // namespace

ServeConfig reloadable_part(const ServeConfig& running, const ServeConfig& fresh,
                            std::vector<std::string>& needs_restart) {
  ServeConfig out = running;
  out.api_keys = fresh.api_keys;
  out.api_key_file = fresh.api_key_file;
  out.allow_unauthenticated = fresh.allow_unauthenticated;
  out.http.admin_api_keys = fresh.http.admin_api_keys;
  out.http.allowed_hosts = fresh.http.allowed_hosts;
  out.http.allowed_origins = fresh.http.allowed_origins;
  // Clients of a port speak TLS, or they do not. gRPC watches its files, and takes no others.
  if (!running.http.grpc_port && running.http.ssl_certfile.empty() == fresh.http.ssl_certfile.empty()) {
    out.http.ssl_certfile = fresh.http.ssl_certfile;
    out.http.ssl_keyfile = fresh.http.ssl_keyfile;
    out.http.ssl_ca_certs = fresh.http.ssl_ca_certs;
  }
  out.http.drain_delay_s = fresh.http.drain_delay_s;
  out.http.drain_timeout_s = fresh.http.drain_timeout_s;
  out.max_waiting_requests = fresh.max_waiting_requests;
  out.max_waiting_tokens = fresh.max_waiting_tokens;
  out.fair_sharing = fresh.fair_sharing;
  out.log.level = fresh.log.level;
  out.served_model_names = fresh.served_model_names;
  out.any_model = fresh.any_model;
  out.strict_fields = fresh.strict_fields;
  out.trust_request_chat_template = fresh.trust_request_chat_template;
  out.prefill_assistant = fresh.prefill_assistant;
  out.generation_config = fresh.generation_config;
  out.reasoning_parser = fresh.reasoning_parser;
  out.reasoning_field = fresh.reasoning_field;
  out.default_chat_template_kwargs = fresh.default_chat_template_kwargs;
  out.default_max_tokens = fresh.default_max_tokens;
  out.slots = fresh.slots;
  out.engine.max_logprobs = fresh.engine.max_logprobs;
  out.engine.seed = fresh.engine.seed;
  needs_restart = changed_options(out, fresh);
  return out;
}

Reloader::Reloader(ServeConfig config, ReadConfig read_config, MetricsRegistry* metrics)
    : read_config_(std::move(read_config)),
      config_(std::move(config)),
      succeeded_(metrics->counter(kReloads, kReloadsHelp, {{"result", "success"}})),
      failed_(metrics->counter(kReloads, kReloadsHelp, {{"result", "error"}})),
      generation_(metrics->gauge("omnibus_config_generation",
                                 "Which configuration holds: 1 at start, 1 more after each reload")) {
  generation_.set(1);
}

ConfigState Reloader::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

Status Reloader::reload(Target target) {
  const Status done = try_reload(std::move(target));
  std::lock_guard lock(mutex_);
  state_.last_error = done.ok() ? "" : status_message(done);
  if (!done.ok()) {
    failed_.add();
    log_error("reload: {}; everything stays as it was", state_.last_error);
    return done;
  }
  succeeded_.add();
  generation_.set(static_cast<double>(++state_.generation));
  log_info("reload: configuration {} holds", state_.generation);
  if (!state_.needs_restart.empty()) {
    log_warning("reload: changed, and waiting for a restart: {}", fmt::join(state_.needs_restart, ", "));
  }
  return done;
}

Status Reloader::try_reload(Target target) {
  OMNIBUS_ASSIGN_OR_RETURN(const ServeConfig fresh, read_config_());
  std::vector<std::string> needs_restart;
  ServeConfig next = reloadable_part(config_, fresh, needs_restart);
  // What was allowed for the address in the file may not be for the one that is bound.
  OMNIBUS_RETURN_IF_ERROR(finish_serve_config(next));
  const EngineLimits limits = engine_limits(next);
  OMNIBUS_ASSIGN_OR_RETURN(ServingApi::Version version, target.api.make(next));
  target.routes.open = version.routes;
  target.routes.rpc = version.rpc;
  OMNIBUS_ASSIGN_OR_RETURN(Listeners::Sites sites, target.listeners.prepare(next, target.routes));
  // The last that can fail.
  OMNIBUS_RETURN_IF_ERROR(target.engine.set_limits(limits));
  target.listeners.replace(std::move(sites));
  target.api.commit(std::move(version));
  set_log_level(next.log.level);
  for (const std::string& warning : next.warnings) log_warning("{}", warning);
  config_ = std::move(next);
  std::lock_guard lock(mutex_);
  state_.needs_restart = std::move(needs_restart);
  return {};
}

}  // namespace omnibus
