#include "listeners.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/config/admin_place.h"
#include "omnibus/server/render_error.h"

#include "admin_socket.h"
#include "durations.h"

namespace omnibus {
namespace {

constexpr char kOllamaHost[] = "127.0.0.1";

HttpServerConfig server_config(const HttpConfig& http) {
  HttpServerConfig config;
  config.host = http.host;
  config.port = static_cast<uint16_t>(http.port);
  config.io_threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4);
  config.max_connections = http.max_connections;
  config.max_body_bytes = static_cast<uint64_t>(http.max_body_bytes);
  config.header_timeout = to_ms(http.header_timeout_s);
  config.body_timeout = to_ms(http.body_timeout_s);
  config.idle_timeout = to_ms(http.keep_alive_timeout_s);
  config.stall_timeout = to_ms(http.stall_timeout_s);
  config.render_error = render_error;
  return config;
}

// The second listener: the same routes and keys, on loopback only, without TLS.
HttpServerConfig ollama_server_config(const HttpConfig& http) {
  HttpServerConfig config = server_config(http);
  config.host = kOllamaHost;
  config.port = static_cast<uint16_t>(*http.ollama_port);
  return config;
}

HttpSite public_site(const ServeConfig& config, const ListenerRoutes& routes, bool loopback) {
  HttpSite site;
  site.routes = routes.open;
  site.auth = std::make_shared<Authenticator>(config.keys, loopback);
  site.allowed_hosts = config.http.allowed_hosts;
  site.allowed_origins = config.http.allowed_origins;
  site.elsewhere = routes.elsewhere;
  return site;
}

TlsFiles tls_files(const HttpConfig& http) {
  return {.certificate = http.ssl_certfile, .key = http.ssl_keyfile, .client_ca = http.ssl_ca_certs};
}

HttpSite main_site(const ServeConfig& config, const ListenerRoutes& routes) {
  HttpSite site = public_site(config, routes, is_loopback_host(config.http.host));
  site.tls = tls_files(config.http);
  return site;
}

GrpcServerConfig grpc_server_config(const HttpConfig& http) {
  GrpcServerConfig config;
  config.max_calls = http.max_connections;
  config.host = http.host;
  config.port = static_cast<uint16_t>(*http.grpc_port);
  config.max_message_bytes = static_cast<uint64_t>(http.max_body_bytes);
  config.body_timeout = to_ms(http.body_timeout_s);
  config.stall_timeout = to_ms(http.stall_timeout_s);
  config.tls = tls_files(http);
  return config;
}

GrpcSite grpc_site(const ServeConfig& config, const ListenerRoutes& routes) {
  GrpcSite site;
  site.methods = routes.rpc;
  site.auth = std::make_shared<Authenticator>(config.keys, is_loopback_host(config.http.host));
  site.elsewhere = routes.elsewhere;
  return site;
}

std::string url_of(const char* scheme, const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, v6 ? "[" : "", host, v6 ? "]" : "", port);
}

// An address that takes loopback's connections, too, leaves that port to nobody else.
Status check_ports(const HttpConfig& http) {
  for (const auto& [other, name] :
       {std::pair{std::optional(http.port), "--port"}, std::pair{http.ollama_port, "--ollama-port"}}) {
    if (http.grpc_port.value_or(0) == 0 || http.grpc_port != other) continue;
    return absl::InvalidArgumentError(fmt::format("--grpc-port: {} is {} already", *other, name));
  }
  if (!http.ollama_port || http.port == 0 || *http.ollama_port != http.port) return {};
  const bool covers_loopback =
      http.host == kOllamaHost || http.host == "localhost" || http.host == "0.0.0.0" || http.host == "::";
  if (!covers_loopback) return {};
  return absl::InvalidArgumentError(
      fmt::format("--ollama-port: {} is --port already; both have the same routes", http.port));
}

}  // namespace

StatusOr<std::unique_ptr<Listeners>> Listeners::start(const ServeConfig& config, const ListenerRoutes& routes,
                                                      const Lifecycle& lifecycle, MetricsRegistry* metrics) {
  const HttpConfig& http = config.http;
  OMNIBUS_RETURN_IF_ERROR(check_ports(http));
  auto listeners = std::make_unique<Listeners>();
  OMNIBUS_ASSIGN_OR_RETURN(listeners->main_,
                           HttpServer::start(server_config(http), main_site(config, routes), metrics));
  listeners->main_url_ =
      url_of(http.ssl_certfile.empty() ? "http" : "https", http.host, listeners->main_->port());
  if (http.ollama_port) {
    OMNIBUS_ASSIGN_OR_RETURN(
        listeners->ollama_,
        HttpServer::start(ollama_server_config(http), public_site(config, routes, true), metrics));
    listeners->ollama_url_ = fmt::format("http://{}:{}", kOllamaHost, listeners->ollama_->port());
  }
  OMNIBUS_RETURN_IF_ERROR(listeners->start_grpc(config, routes, lifecycle, metrics));
  const Status admin = listeners->start_admin(config, routes, metrics);
  if (admin.ok()) return listeners;
  if (http.admin_listen != "auto") {
    return absl::Status(admin.code(), "--admin-listen: " + status_message(admin));
  }
  log_warning("there are no admin routes: {}", status_message(admin));
  return listeners;
}

Status Listeners::start_grpc(const ServeConfig& config, const ListenerRoutes& routes,
                             const Lifecycle& lifecycle, MetricsRegistry* metrics) {
  const HttpConfig& http = config.http;
  if (!http.grpc_port) return {};
  auto server = GrpcServer::start(grpc_server_config(http), grpc_site(config, routes), &lifecycle, metrics);
  if (!server.ok()) {
    return absl::Status(server.status().code(), "--grpc-port: " + status_message(server.status()));
  }
  grpc_ = *std::move(server);
  const bool v6 = http.host.find(':') != std::string::npos;
  grpc_address_ = fmt::format("{}{}{}:{}{}", v6 ? "[" : "", http.host, v6 ? "]" : "", grpc_->port(),
                              http.ssl_certfile.empty() ? "" : " (TLS)");
  if (!is_loopback_host(http.host)) {
    log_warning(
        "--grpc-port beyond loopback: this gRPC gets no security updates for HTTP/2; keep strangers "
        "behind a proxy (docs/grpc.md, Limits)");
  }
  return {};
}

Status Listeners::start_admin(const ServeConfig& config, const ListenerRoutes& routes,
                              MetricsRegistry* metrics) {
  OMNIBUS_ASSIGN_OR_RETURN(AdminPlace place, parse_admin_place(config.http));
  if (place.kind == AdminPlace::Kind::kOff) return {};
  if (place.kind == AdminPlace::Kind::kAuto) {
    OMNIBUS_ASSIGN_OR_RETURN(place.path, make_admin_socket_path(main_->port()));
  }
  HttpServerConfig http = server_config(config.http);
  http.io_threads = 1;
  http.host = place.host;
  http.port = place.port;
  http.unix_path = place.path;
  admin_on_unix_ = place.kind != AdminPlace::Kind::kTcp;
  OMNIBUS_ASSIGN_OR_RETURN(admin_, HttpServer::start(std::move(http), admin_site(config, routes), metrics));
  admin_place_ = admin_on_unix_ ? "unix:" + place.path : url_of("http", place.host, admin_->port());
  return {};
}

HttpSite Listeners::admin_site(const ServeConfig& config, const ListenerRoutes& routes) const {
  std::vector<ApiKey> keys;
  for (const std::string& key : config.http.admin_api_keys) keys.push_back({"admin", key});
  if (admin_on_unix_) keys.clear();
  HttpSite site;
  site.routes = routes.admin;
  site.auth = std::make_shared<Authenticator>(Authenticator::for_admin(keys));
  return site;
}

StatusOr<Listeners::Sites> Listeners::prepare(const ServeConfig& config, const ListenerRoutes& routes) const {
  Sites sites;
  OMNIBUS_ASSIGN_OR_RETURN(sites.main, main_->prepare(main_site(config, routes)));
  if (ollama_) {
    OMNIBUS_ASSIGN_OR_RETURN(sites.ollama, ollama_->prepare(public_site(config, routes, true)));
  }
  if (grpc_) sites.grpc = grpc_site(config, routes);
  if (admin_) {
    OMNIBUS_ASSIGN_OR_RETURN(sites.admin, admin_->prepare(admin_site(config, routes)));
  }
  return sites;
}

void Listeners::replace(Sites sites) const {
  main_->replace(std::move(sites.main));
  if (ollama_) ollama_->replace(std::move(sites.ollama));
  if (grpc_) grpc_->replace(std::move(sites.grpc));
  if (admin_) admin_->replace(std::move(sites.admin));
}

void Listeners::begin_drain() const {
  main_->begin_drain();
  if (ollama_) ollama_->begin_drain();
  if (grpc_) grpc_->begin_drain();
}

void Listeners::stop(std::chrono::milliseconds limit) const {
  main_->stop(limit);
  if (ollama_) ollama_->stop(limit);
  if (grpc_) grpc_->stop(limit);
  if (admin_) admin_->stop(limit);
}

}  // namespace omnibus
