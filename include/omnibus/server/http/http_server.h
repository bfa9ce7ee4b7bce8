// HttpServer: HTTP/1.1 on one listener, Asio and Beast behind it. One coroutine per connection; limits on
// everything a client can make large or slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/authenticator.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// PEM files; no certificate: plain HTTP.
struct TlsFiles {
  std::string certificate;  // the chain, own certificate first
  std::string key;          // empty: in `certificate`
  std::string client_ca;    // not empty: who connects shows a certificate that one of these signed
};

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  int io_threads = 1;
  int max_connections = 10'000;
  uint64_t max_body_bytes = uint64_t{32} << 20;       // no route takes more
  uint64_t max_buffered_bytes = uint64_t{512} << 20;  // all bodies together; more get 503
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};   // for a body, and 1 s more per 64,000 bytes of it
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds stall_timeout{30'000};  // a reader that takes no byte is gone
  // Names that requests may be addressed to, beside those of loopback; "*": any, "*.name": all below it. None
  // given: any, unless the listener is on loopback.
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;  // of web pages that may call; "*": all
  TlsFiles tls;
  // Makes the body of an error that happens in front of the handlers (404, 413, ...). Required.
  std::function<HttpResponse(const Status& error, std::string_view path)> render_error;
};

class HttpServer {
 public:
  // Whether start() could bind now and use its certificates, with its errors: to be asked before long work.
  // Nothing listens meanwhile.
  static Status check(const HttpServerConfig& config);
  // Binds and serves. `routes`, `auth` and `metrics` outlive the server and may serve others, too. Errors
  // name host and port, or the file.
  static StatusOr<std::unique_ptr<HttpServer>> start(HttpServerConfig config, const RouteTable* routes,
                                                     const Authenticator* auth, MetricsRegistry* metrics);
  virtual ~HttpServer() = default;  // stops at once

  virtual uint16_t port() const = 0;
  // Every answer whose head is made from now on carries Connection: close, also that of a request that came
  // before.
  virtual void begin_drain() = 0;
  // Closes the listener and idle connections, lets busy ones finish until `limit`, then closes them.
  virtual void stop(std::chrono::milliseconds limit) = 0;
};

}  // namespace omnibus
