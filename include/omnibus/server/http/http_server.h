// HttpServer: HTTP/1.1 on one listener, Asio and Beast behind it. One coroutine per connection; limits on
// everything a client can make large or slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_site.h"

namespace omnibus {

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  // Not empty: a Unix socket of this path instead of host and port, open to this user alone. One that a dead
  // process left behind is replaced; the server removes its own when it stops.
  std::string unix_path;
  int io_threads = 1;
  int max_connections = 10'000;
  uint64_t max_body_bytes = uint64_t{32} << 20;       // no route takes more
  uint64_t max_buffered_bytes = uint64_t{512} << 20;  // all bodies together; more get 503
  // Time during which the process itself stood still counts for none of these.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};   // for a body, and 1 s more per 64,000 bytes of it
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds stall_timeout{30'000};  // a reader that takes no byte is gone
  // Makes the body of an error that happens in front of the handlers (404, 413, ...). Required.
  std::function<HttpResponse(const Status& error, std::string_view path)> render_error;
};

class HttpServer {
 public:
  // Binds and serves. `metrics` outlives the server and may serve others, too. Errors name host and port, or
  // the file.
  static StatusOr<std::unique_ptr<HttpServer>> start(HttpServerConfig config, HttpSite site,
                                                     MetricsRegistry* metrics);
  virtual ~HttpServer() = default;  // stops at once

  virtual uint16_t port() const = 0;  // 0: a Unix socket
  // Reads what `site` refers to; nothing changes yet. Errors name the file. Any thread.
  virtual StatusOr<LiveSitePtr> prepare(HttpSite site) const = 0;
  // Requests whose heads are read from now on get this site; the others keep theirs, which lives as long as
  // one of them. Any thread.
  virtual void replace(LiveSitePtr site) = 0;
  // Every answer whose head is made from now on carries Connection: close, also that of a request that came
  // before.
  virtual void begin_drain() = 0;
  // Closes the listener and idle connections, lets busy ones finish until `limit`, then closes them.
  virtual void stop(std::chrono::milliseconds limit) = 0;
};

}  // namespace omnibus
