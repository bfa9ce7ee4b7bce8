#include "omnibus/client/http_client.h"

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "exchange.h"
#include "transport.h"

namespace omnibus::client {
namespace {
constexpr size_t kMostBody = 64 << 20;
}

struct HttpClient::Impl {
  StatusOr<HttpAnswer> call(std::string_view method, std::string_view path, std::string_view body);
  asio::awaitable<StatusOr<HttpAnswer>> run(std::string request);

  Endpoint endpoint;
  std::chrono::nanoseconds timeout{};
  SteadyClock clock;
  asio::io_context io{1};
  std::unique_ptr<Connector> connector;
  std::shared_ptr<Transport> transport;  // nullptr: none is open
  bool timed_out = false;
};

asio::awaitable<StatusOr<HttpAnswer>> HttpClient::Impl::run(std::string request) {
  // A kept connection may have been closed meanwhile; then a new one is tried, once.
  for (bool fresh = transport == nullptr;; fresh = true) {
    if (fresh) {
      if (Status opened = co_await connector->open(transport); !opened.ok()) {
        transport.reset();
        co_return opened;
      }
    }
    HttpAnswer answer;
    AnswerSink sink;
    sink.on_head = [&answer](int status, std::string_view /*type*/) { answer.status = status; };
    sink.on_body = [&answer](std::string_view bytes, MonotonicNs /*arrived*/) { answer.body += bytes; };
    sink.too_long = [&answer] { return answer.body.size() > kMostBody; };
    const auto current = transport;
    const ExchangeResult result = co_await exchange(*current, request, std::move(sink), clock);
    if (!result.keep_alive) transport.reset();
    if (result.whole) co_return answer;
    if (fresh || result.any_byte || timed_out) co_return result.status;
  }
}

StatusOr<HttpAnswer> HttpClient::Impl::call(std::string_view method, std::string_view path,
                                            std::string_view body) {
  if (connector == nullptr) {
    OMNIBUS_ASSIGN_OR_RETURN(connector, Connector::make(io, endpoint));
  }
  std::optional<StatusOr<HttpAnswer>> outcome;
  timed_out = false;
  asio::steady_timer timer(io);
  timer.expires_after(timeout);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timed_out = true;
    if (transport) transport->close();
  });
  asio::co_spawn(io, run(request_bytes(endpoint, method, path, body)),
                 [&outcome, &timer](const std::exception_ptr& thrown, StatusOr<HttpAnswer> answer) {
                   outcome = thrown ? absl::InternalError("the request failed") : std::move(answer);
                   timer.cancel();
                 });
  io.restart();
  io.run();
  if (timed_out) {
    transport.reset();
    return absl::DeadlineExceededError(
        fmt::format("no answer within {} s", std::chrono::duration<double>(timeout).count()));
  }
  return *std::move(outcome);
}

HttpClient::HttpClient(Endpoint endpoint, double timeout_s) : impl_(std::make_unique<Impl>()) {
  impl_->endpoint = std::move(endpoint);
  impl_->timeout = std::chrono::nanoseconds(static_cast<int64_t>(timeout_s * 1e9));
}

HttpClient::~HttpClient() = default;

StatusOr<HttpAnswer> HttpClient::get(std::string_view path) { return impl_->call("GET", path, ""); }

StatusOr<HttpAnswer> HttpClient::post_json(std::string_view path, std::string_view body) {
  return impl_->call("POST", path, body);
}

}  // namespace omnibus::client
