// One HTTP/1.1 request and its answer over a Transport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "omnibus/base/common/clock.h"

#include "transport.h"

namespace omnibus::client {

// The head and body as sent. `body` "" with GET.
std::string request_bytes(const Endpoint& endpoint, std::string_view method, std::string_view path,
                          std::string_view body);

struct ExchangeResult {
  Status status;          // UNAVAILABLE: the connection broke; INTERNAL: what came is not HTTP, or too long
  bool whole = false;     // the answer came to its end
  bool any_byte = false;  // something was received
  bool keep_alive = false;
};

// What is told while the answer comes. `arrived` is the time at which the bytes were read.
struct AnswerSink {
  std::function<void(int status, std::string_view content_type)> on_head;
  std::function<void(std::string_view bytes, MonotonicNs arrived)> on_body;
  std::function<bool()> too_long;  // true ends the exchange
};

asio::awaitable<ExchangeResult> exchange(Transport& transport, std::string_view request, AnswerSink sink,
                                         const Clock& clock);

}  // namespace omnibus::client
