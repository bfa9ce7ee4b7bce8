// HttpClient: single requests, one after the other, over one kept connection. For set-up and for tools; load
// is LoadGenerator's work.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/client/endpoint.h"

namespace omnibus::client {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// One thread at a time.
class HttpClient {
 public:
  HttpClient(Endpoint endpoint, double timeout_s);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Waits for the whole answer, whatever its status. UNAVAILABLE: there is no connection, or it broke;
  // DEADLINE_EXCEEDED: not within the time-out. `path` goes behind the endpoint's prefix.
  StatusOr<HttpAnswer> get(std::string_view path);
  StatusOr<HttpAnswer> post_json(std::string_view path, std::string_view body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace omnibus::client
