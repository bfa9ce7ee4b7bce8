// A byte stream to a server, plain or TLS. All of it on one thread's io_context.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "omnibus/base/common/status.h"
#include "omnibus/client/endpoint.h"

namespace omnibus::client {

namespace asio = boost::asio;

class Transport {
 public:
  virtual ~Transport() = default;
  // Errors as values; 0 bytes read: the server has closed.
  virtual asio::awaitable<Status> write(std::string_view bytes) = 0;
  virtual asio::awaitable<StatusOr<size_t>> read_some(std::span<char> into) = 0;
  // Ends waits with an error; the stream is of no use afterwards.
  virtual void close() = 0;
};

// Opens transports to one endpoint. The name is resolved at the first.
class Connector {
 public:
  // INVALID_ARGUMENT when the certificates cannot be read.
  static StatusOr<std::unique_ptr<Connector>> make(asio::io_context& io, const Endpoint& endpoint);

  // `opening` is where the stream is put before it is connected, so that another coroutine may close it.
  asio::awaitable<Status> open(std::shared_ptr<Transport>& opening);

 private:
  Connector(asio::io_context& io, const Endpoint& endpoint) : io_(io), endpoint_(endpoint) {}
  asio::awaitable<Status> resolve();

  asio::io_context& io_;
  const Endpoint endpoint_;
  asio::ip::tcp::resolver::results_type addresses_;
  std::unique_ptr<asio::ssl::context> tls_;
};

}  // namespace omnibus::client
