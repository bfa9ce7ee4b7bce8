// The listeners of a server: the public one, Ollama's port, gRPC's, and the admin routes' place.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/grpc/grpc_server.h"
#include "omnibus/server/http/http_server.h"

namespace omnibus {

// What they serve.
struct ListenerRoutes {
  std::shared_ptr<const RouteTable> open;   // of the public listeners
  std::shared_ptr<const RpcTable> rpc;      // of gRPC's
  std::shared_ptr<const RouteTable> admin;  // of the admin listener
  Status elsewhere;                         // HttpSite::elsewhere of the public ones
};

class Listeners {
 public:
  // All of them, or an error that names the flag or the address. An admin socket of --admin-listen auto that
  // cannot be made costs a line in the log.
  static StatusOr<std::unique_ptr<Listeners>> start(const ServeConfig& config, const ListenerRoutes& routes,
                                                    const Lifecycle& lifecycle, MetricsRegistry* metrics);

  // Sites for each, ready to be swapped in.
  struct Sites {
    LiveSitePtr main, ollama, admin;
    GrpcSite grpc;
  };
  StatusOr<Sites> prepare(const ServeConfig& config, const ListenerRoutes& routes) const;
  void replace(Sites sites) const;

  // Answers of the public listeners carry Connection: close from now on.
  void begin_drain() const;
  // The admin listener goes last.
  void stop(std::chrono::milliseconds limit) const;

  std::string main_url() const { return main_url_; }
  std::string ollama_url() const { return ollama_url_; }      // "": there is none
  std::string grpc_address() const { return grpc_address_; }  // "": there is none
  std::string admin_place() const { return admin_place_; }    // "unix:PATH" or a URL; "": there is none

 private:
  Status start_grpc(const ServeConfig& config, const ListenerRoutes& routes, const Lifecycle& lifecycle,
                    MetricsRegistry* metrics);
  Status start_admin(const ServeConfig& config, const ListenerRoutes& routes, MetricsRegistry* metrics);
  HttpSite admin_site(const ServeConfig& config, const ListenerRoutes& routes) const;

  std::unique_ptr<HttpServer> main_, ollama_, admin_;  // all but main_ may be null
  std::unique_ptr<GrpcServer> grpc_;                   // may be null
  std::string main_url_, ollama_url_, grpc_address_, admin_place_;
  bool admin_on_unix_ = false;
};

}  // namespace omnibus
