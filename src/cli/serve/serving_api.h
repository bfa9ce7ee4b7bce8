// ServingApi: the routes of the public listeners, made from the configuration; made again by every reload.
#pragma once

#include <memory>
#include <utility>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/cli/served_model.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/admin/probe_routes.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/server/grpc/grpc_server.h"
#include "omnibus/server/http/route_table.h"
#include "omnibus/server/ollama/ollama_api.h"

namespace omnibus {

// One thread. Everything that it is made with outlives it; it outlives the listeners.
class ServingApi {
 public:
  ServingApi(const ServedModel& model, AsyncEngine& engine, const Lifecycle& lifecycle,
             MetricsRegistry& metrics, MetricsPage& metrics_page);

  // What a configuration comes to. Nothing holds before commit().
  struct Version {
    std::unique_ptr<ApiCore> core;
    std::shared_ptr<const RouteTable> routes;
    std::shared_ptr<const RpcTable> rpc;  // null where there is no port for gRPC
  };
  // Errors name the flag.
  StatusOr<Version> make(const ServeConfig& config) const;
  // Once its routes are served: the next version goes on where this one is by then.
  void commit(Version version) { core_ = std::move(version.core); }

 private:
  const ServedModel& model_;
  AsyncEngine& engine_;
  const Lifecycle& lifecycle_;
  MetricsRegistry& metrics_;
  MetricsPage& metrics_page_;
  const OllamaModelsPtr ollama_models_;
  std::unique_ptr<ApiCore> core_;  // of the routes that are served
};

// Whether make() can be expected to succeed, as far as that can be said without the model.
Status check_api_options(const ServeConfig& config);

// I/O and text threads are a part of the cores; the rest computes.
int text_threads();

}  // namespace omnibus
