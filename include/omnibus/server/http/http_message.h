// HttpRequest, HttpResponse: one exchange as values, free of any library's types.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibus {

struct HttpRequest {
  std::string method;          // "GET", "POST", ... as sent
  std::string path;            // percent-decoded, without query; the one that routing and handlers use
  std::string path_parameter;  // what {id} of the route's pattern matched, decoded
  std::string query;           // after '?', as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, in order of arrival
  std::string host;  // whom the request is addressed to: the target's authority, else Host; 1.0 may have none
  std::string tenant;  // name of the key that it came with; empty without one
  std::string body;
  std::shared_ptr<void> body_lease;    // holds the body's share of the server's memory for bodies
  std::optional<int64_t> deadline_ns;  // on the engine's clock: nobody waits for the answer any longer
  std::string request_id;              // the client's X-Request-Id when it is fit to echo, else one of ours
  std::string trace_id;                // of a valid `traceparent` (trace_context.h); empty without one
  bool http_1_0 = false;
  bool keep_alive = true;

  // Value of the first header of this name (lower case); empty when absent.
  std::string_view header(std::string_view name) const;
  size_t count_header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";  // empty: no Content-Type (and no body)
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// "OK", "Not Found", ...; "Unknown" for a status that omnibus never sends.
std::string_view http_reason(int status);

}  // namespace omnibus
