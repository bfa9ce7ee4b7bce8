#include "omnibus/server/admin/admin_routes.h"

#include <utility>

#include "omnibus/base/common/log.h"
#include "omnibus/server/admin/probe_routes.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/server/render_error.h"

#include "api/json_response.h"
#include "api/text_pool.h"

namespace omnibus {
namespace {

constexpr uint64_t kAdminBodyBytes = 64 * 1024;
constexpr size_t kSlowQueue = 16;

// What the handlers share.
struct AdminContext {
  AdminContext(AdminConfig config_in, Lifecycle& lifecycle_in)
      : config(std::move(config_in)), lifecycle(lifecycle_in), slow(1, kSlowQueue) {}

  const AdminConfig config;
  Lifecycle& lifecycle;
  TextPool slow;  // for what waits for the engine
};
using AdminPtr = std::shared_ptr<AdminContext>;

Json config_json(const ConfigState& state) {
  Json json;
  json["generation"] = state.generation;
  json["needs_restart"] = state.needs_restart;
  json["last_error"] = state.last_error.empty() ? Json(nullptr) : Json(state.last_error);
  return json;
}

const char* phase_of(const Lifecycle& lifecycle) {
  if (lifecycle.draining()) return "draining";
  return lifecycle.engine() == nullptr ? "loading" : "serving";
}

Json status_json(const AdminContext& admin) {
  const Lifecycle& lifecycle = admin.lifecycle;
  const std::string not_live = lifecycle.why_not_live(), not_ready = lifecycle.why_not_ready();
  Json json;
  json["version"] = admin.config.version;
  json["model"] = admin.config.model;
  json["uptime_s"] = lifecycle.uptime().count();
  json["phase"] = phase_of(lifecycle);
  json["live"] = not_live.empty();
  json["ready"] = not_ready.empty();
  json["reason"] = not_ready.empty() ? Json(nullptr) : Json(not_ready);
  if (const AsyncEngine* engine = lifecycle.engine()) {
    const EngineHealth health = engine->health();
    json["requests"] = {{"running", health.running}, {"waiting", health.waiting}};
    json["kv_blocks"] = {{"total", health.total_blocks}, {"used", health.used_blocks}};
    json["steps"] = health.steps;
  }
  json["config"] = config_json(admin.config.actions.config_state());
  json["log_level"] = log_level_name(log_level());
  return json;
}

void handle_drain(const AdminPtr& admin, const HttpRequest& /*request*/, const ReplyPtr& reply) {
  Json body;
  body["status"] = "draining";
  HttpResponse response = json_response(body);
  response.status = 202;
  reply->send(std::move(response));
  if (admin->lifecycle.begin_drain()) admin->config.actions.drain();
}

void handle_reload(const AdminPtr& admin, const HttpRequest& request, const ReplyPtr& reply) {
  admin->config.actions.reload([admin, path = request.path, reply](const Status& result) {
    reply->send(result.ok() ? json_response(config_json(admin->config.actions.config_state()))
                            : render_error(result, path));
  });
}

void handle_reset_prefix_cache(const AdminPtr& admin, const HttpRequest& request, const ReplyPtr& reply) {
  const auto job = [engine = admin->lifecycle.engine(), path = request.path, reply] {
    const Status done = engine->reset_prefix_cache();
    reply->send(done.ok() ? json_response(Json::object()) : render_error(done, path));
  };
  if (admin->slow.try_post(job)) return;
  reply->send(
      render_error(absl::UnavailableError("Too many such requests wait for the engine"), request.path));
}

// {"level": "debug"}
StatusOr<LogLevel> asked_level(const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const Json body, parse_json(request.body));
  const auto level = body.is_object() ? body.find("level") : body.end();
  if (!body.is_object() || level == body.end() || !level->is_string() || body.size() != 1) {
    return invalid_field("level", "The body is {\"level\": L}, with L one of debug, info, warning, error");
  }
  const auto parsed = parse_log_level(level->get<std::string>());
  if (parsed.ok()) return parsed;
  return invalid_field("level", "level is none of debug, info, warning, error");
}

void handle_log_level(const AdminPtr& /*admin*/, const HttpRequest& request, const ReplyPtr& reply) {
  const auto level = asked_level(request);
  if (!level.ok()) {
    reply->send(render_error(level.status(), request.path));
    return;
  }
  set_log_level(*level);
  Json body;
  body["level"] = log_level_name(*level);
  reply->send(json_response(body));
}

using Handler = void (*)(const AdminPtr&, const HttpRequest&, const ReplyPtr&);

// Of what needs the model.
RouteHandler once_loaded(const AdminPtr& admin, Handler run) {
  return [admin, run](const HttpRequest& request, const ReplyPtr& reply) {
    if (admin->lifecycle.engine() == nullptr) {
      reply->send(render_error(still_loading(), request.path));
      return;
    }
    run(admin, request, reply);
  };
}

}  // namespace

void add_admin_routes(AdminConfig config, Lifecycle& lifecycle, MetricsPage& metrics, RouteTable& routes) {
  const auto admin = std::make_shared<AdminContext>(std::move(config), lifecycle);
  const auto post = [&](const char* path, RouteHandler handler) {
    routes.add({"POST", path, Scope::kAdmin, kAdminBodyBytes, std::move(handler)});
  };
  post("/drain", once_loaded(admin, handle_drain));
  post("/reload", once_loaded(admin, handle_reload));
  post("/reset_prefix_cache", once_loaded(admin, handle_reset_prefix_cache));
  post("/log_level", [admin](const HttpRequest& request, const ReplyPtr& reply) {
    handle_log_level(admin, request, reply);
  });
  routes.add(
      {"GET", "/status", Scope::kAdmin, kAdminBodyBytes, [admin](const HttpRequest&, const ReplyPtr& reply) {
         reply->send(json_response(status_json(*admin)));
       }});
  add_probe_routes(lifecycle, routes);
  add_metrics_route(metrics, routes);
}

}  // namespace omnibus
