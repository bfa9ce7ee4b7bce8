// GrpcServer: omnibus.v1.Inference, grpc.health.v1 and reflection on one listener. The same keys, scopes,
// field tables and generation as over HTTP; docs/grpc.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/server/http/http_site.h"

namespace omnibus {

struct GrpcServerConfig {
  std::string host = "127.0.0.1";
  uint16_t port = 0;                                  // 0: any free one
  uint64_t max_message_bytes = uint64_t{32} << 20;    // of one request
  uint64_t max_buffered_bytes = uint64_t{512} << 20;  // all requests together; more get UNAVAILABLE
  int max_calls = 10'000;  // open at once, with a key and without; more get RESOURCE_EXHAUSTED
  int max_streams = 128;   // of one connection at once
  int max_metadata_bytes = 16 * 1024;
  std::chrono::milliseconds body_timeout{30'000};   // for a request, and 1 s per 64,000 bytes it may have
  std::chrono::milliseconds stall_timeout{30'000};  // a reader that takes no message is gone
  TlsFiles tls = {};                                // looked at again every few seconds
};

// The methods of omnibus.v1.Inference under the settings of one ApiCore.
struct RpcTable;
// `core` is asked for its handlers and not kept; it goes after the server, as it goes after any listener.
std::shared_ptr<const RpcTable> make_rpc_table(ApiCore& core, uint64_t max_message_bytes);

// What is served, and to whom; swapped as one value.
struct GrpcSite {
  std::shared_ptr<const RpcTable> methods;  // null: health and reflection alone
  std::shared_ptr<const Authenticator> auth;
  Status elsewhere;  // answers to calls of other methods. OK: that there is no such method
};

class GrpcServer {
 public:
  // Binds and serves. `lifecycle` (for health) and `metrics` outlive the server. Errors name host and port
  // alone: serve HTTP with the same files first.
  static StatusOr<std::unique_ptr<GrpcServer>> start(const GrpcServerConfig& config, GrpcSite site,
                                                     const Lifecycle* lifecycle, MetricsRegistry* metrics);
  virtual ~GrpcServer() = default;  // stops at once

  virtual uint16_t port() const = 0;
  // Calls that come from now on get this site; the others keep theirs. Any thread.
  virtual void replace(GrpcSite site) = 0;
  // New calls are UNAVAILABLE from now on, and running ones go on.
  virtual void begin_drain() = 0;
  // Takes no connection any more, lets calls finish until `limit`, then ends them.
  virtual void stop(std::chrono::milliseconds limit) = 0;
};

}  // namespace omnibus
