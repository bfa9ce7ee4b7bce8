// The one table of routes: what exists, who may call it, how large its body may be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/reply.h"

namespace omnibus {

// Who may call a route. kPublic: everybody. kMetrics: everybody on a loopback bind, a key elsewhere.
// kInference: a key, if there are keys. kAdmin: on the admin listener only.
enum class Scope { kPublic, kInference, kMetrics, kAdmin };

inline constexpr uint64_t kPlainBodyBytes = uint64_t{8} << 20;
inline constexpr uint64_t kGenerationBodyBytes = uint64_t{32} << 20;

// Called on a connection's thread; must not block. Long work goes to the text pool.
using RouteHandler = std::function<void(HttpRequest request, ReplyPtr reply)>;

struct BodyFields;  // server/api/body_fields.h: what the documentation says about a JSON body

struct Route {
  // There is no default scope: a route without one does not compile.
  Route(std::string method_in, std::string pattern_in, Scope scope_in, uint64_t max_body, RouteHandler run,
        std::shared_ptr<const BodyFields> fields = nullptr)
      : method(std::move(method_in)),
        pattern(std::move(pattern_in)),
        scope(scope_in),
        max_body_bytes(max_body),
        handler(std::move(run)),
        body(std::move(fields)) {}

  std::string method;   // a GET route also answers HEAD
  std::string pattern;  // "/v1/models", or with a tail "/v1/models/{id}": one or more characters, any '/'
  Scope scope;
  uint64_t max_body_bytes;
  RouteHandler handler;
  std::shared_ptr<const BodyFields> body;  // null: the route takes no JSON object
};

// Filled at start-up, then read from any thread.
class RouteTable {
 public:
  void add(Route route);

  struct Match {
    const Route* route = nullptr;  // nullptr: see `allow`
    std::string parameter;         // what {id} stands for
    std::string allow;             // methods of that path, for 405 and OPTIONS; empty: no such path
  };
  // `path` is the decoded one. Compared byte by byte: no case folding, no merging of slashes, no dot
  // segments.
  Match find(std::string_view method, std::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace omnibus
