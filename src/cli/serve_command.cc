#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/log_flush.h"
#include "omnibus/cli/serve.h"
#include "omnibus/server/admin/admin_routes.h"
#include "omnibus/server/admin/probe_routes.h"

#include "commands.h"
#include "descriptor_limit.h"
#include "progress_bar.h"
#include "serve/control.h"
#include "serve/drain.h"
#include "serve/durations.h"
#include "serve/engine_limits.h"
#include "serve/listeners.h"
#include "serve/reload.h"
#include "serve/serving_api.h"
#include "serve/start_table.h"
#include "stop_signals.h"
#include "version.h"

namespace omnibus {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);

// A server, in the order in which its parts come to be: what comes later refers to what came before.
class Serving {
 public:
  Serving(const ServeConfig& config, const ServeProgram& program)
      : config_(config), program_(program), reloader_(config, program.read_config, &metrics_) {}

  // Listens; probes say "loading".
  Status listen();
  // Loads the model and puts its API in place.
  Status load();
  // Until a signal, or until the engine is beyond help: the process is then the unit that restarts.
  int run();

 private:
  ListenerRoutes routes_while_loading();
  AdminConfig admin_config();
  void show_ready() const { ready_.set(lifecycle_.why_not_ready().empty() ? 1 : 0); }
  void reload(const std::vector<Control::ReloadDone>& waiting);
  // The exit code after a drain.
  static int leave(EngineTrouble trouble);

  const Signals signals_;  // first: before any thread exists
  const ServeConfig config_;
  const ServeProgram& program_;
  const SteadyClock clock_;
  MetricsRegistry metrics_;
  MetricsPage metrics_page_{metrics_};
  const Gauge ready_ = metrics_.gauge("omnibus_ready", "1 while /readyz answers 200");
  Control control_{signals_};
  Lifecycle lifecycle_;
  Reloader reloader_;
  ServedModel model_;
  std::unique_ptr<AsyncEngine> engine_;
  std::unique_ptr<ServingApi> api_;
  ListenerRoutes routes_;
  std::unique_ptr<Listeners> listeners_;
};

AdminConfig Serving::admin_config() {
  AdminConfig admin;
  admin.version = version();
  admin.model = config_.model;
  admin.actions.drain = [this] { control_.ask_to_drain(); };
  admin.actions.reload = [this](Control::ReloadDone done) { control_.ask_to_reload(std::move(done)); };
  admin.actions.config_state = [this] { return reloader_.state(); };
  return admin;
}

ListenerRoutes Serving::routes_while_loading() {
  auto open = std::make_shared<RouteTable>();
  add_probe_routes(lifecycle_, *open);
  add_metrics_route(metrics_page_, *open);
  auto admin = std::make_shared<RouteTable>();
  add_admin_routes(admin_config(), lifecycle_, metrics_page_, *admin);
  return {.open = std::move(open), .admin = std::move(admin), .elsewhere = still_loading()};
}

Status Serving::listen() {
  raise_descriptor_limit();
  for (const std::string& warning : config_.warnings) log_warning("{}", warning);
  OMNIBUS_RETURN_IF_ERROR(check_api_options(config_));
  routes_ = routes_while_loading();
  OMNIBUS_ASSIGN_OR_RETURN(listeners_, Listeners::start(config_, routes_, lifecycle_, &metrics_));
  log_info("listening on {}, loading the model", listeners_->main_url());
  return {};
}

Status Serving::load() {
  std::optional<ExitOnStopSignal> while_loading(std::in_place);
  OMNIBUS_ASSIGN_OR_RETURN(model_, program_.open_model());
  OMNIBUS_RETURN_IF_ERROR(dialect_of(config_.reasoning_parser, model_).status());
  const EngineLimits limits = engine_limits(config_);
  model_.engine.max_waiting_requests = limits.max_waiting_requests;
  model_.engine.max_waiting_tokens = limits.max_waiting_tokens;
  model_.engine.fair_sharing = limits.fair_sharing;
  model_.engine.text_threads = text_threads();
  OMNIBUS_ASSIGN_OR_RETURN(engine_, start_engine(model_, &metrics_, &clock_));
  api_ = std::make_unique<ServingApi>(model_, *engine_, lifecycle_, metrics_, metrics_page_);
  OMNIBUS_ASSIGN_OR_RETURN(ServingApi::Version version, api_->make(config_));
  routes_.open = version.routes;
  routes_.rpc = version.rpc;
  routes_.elsewhere = {};
  OMNIBUS_ASSIGN_OR_RETURN(Listeners::Sites sites, listeners_->prepare(config_, routes_));
  listeners_->replace(std::move(sites));
  api_->commit(std::move(version));
  routes_.open.reset();  // the listeners have them; each reload makes its own
  routes_.rpc.reset();
  while_loading.reset();  // first: who sees it ready may ask it to drain
  lifecycle_.begin_serving(engine_.get());
  show_ready();
  return {};
}

void Serving::reload(const std::vector<Control::ReloadDone>& waiting) {
  const Status done = reloader_.reload({*api_, *engine_, *listeners_, routes_});
  for (const auto& answer : waiting) answer(done);
}

int Serving::leave(EngineTrouble trouble) {
  if (trouble == EngineTrouble::kStalled) {
    log_error("the engine stands still: leaving without it");
    flush_log();
    std::_Exit(kExitFailure);  // its thread cannot be joined
  }
  if (trouble == EngineTrouble::kFailed) {
    log_error("the engine failed while the server drained");
    return kExitFailure;
  }
  log_info("stopped");
  return kExitOk;
}

int Serving::run() {
  print_start_table(*engine_, model_, *listeners_);
  for (;;) {
    const Control::Events events = control_.wait_for(kPoll);
    show_ready();
    if (events.drain || events.signal == SIGTERM || events.signal == SIGINT) {
      lifecycle_.begin_drain();
      show_ready();
      for (const auto& answer : events.reloads) answer(absl::UnavailableError("The server is draining"));
      return leave(drain(control_, *engine_, *listeners_, reloader_.config().http));
    }
    if (events.signal == SIGHUP || !events.reloads.empty()) reload(events.reloads);
    if (engine_->health().trouble != EngineTrouble::kFailed) continue;
    listeners_->stop(kFlushLimit);
    return kExitFailure;
  }
}

}  // namespace

int serve(const ServeConfig& config, const ServeProgram& program) {
  std::optional<ExitOnStopSignal> while_ending;  // outlives the server: its end may wait for a step
  Serving serving(config, program);
  Status ready = serving.listen();
  if (ready.ok()) ready = serving.load();
  const int code = ready.ok() ? serving.run() : report_failure(ready);
  while_ending.emplace();
  return code;
}

int serve_command(const ServeConfig& config, const std::vector<std::string>& args) {
  ProgressBar bar("loading");
  ServeProgram program;
  program.open_model = [&] {
    return open_model(config.model, config.engine, config.chat_template_file,
                      [&bar](int64_t done, int64_t total) { bar.update(done, total); });
  };
  program.read_config = [&args]() -> StatusOr<ServeConfig> {
    OMNIBUS_ASSIGN_OR_RETURN(const ParsedCommand command, parse_command_line(args));
    return std::get<ServeConfig>(command);
  };
  return serve(config, program);
}

}  // namespace omnibus
