#include "transport.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

namespace omnibus::client {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;
constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);

Status failure(std::string_view what, const error_code& error) {
  return absl::UnavailableError(fmt::format("{}: {}", what, error.message()));
}

bool is_end(const error_code& error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

template <typename Stream>
asio::awaitable<Status> write_all(Stream& stream, std::string_view bytes) {
  const auto [error, count] =
      co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), kToken);
  if (error) co_return failure("sending the request", error);
  co_return Status();
}

template <typename Stream>
asio::awaitable<StatusOr<size_t>> read_from(Stream& stream, std::span<char> into) {
  const auto [error, count] = co_await stream.async_read_some(asio::buffer(into.data(), into.size()), kToken);
  if (error && !is_end(error)) co_return failure("reading the answer", error);
  co_return error ? 0 : count;
}

void close_socket(tcp::socket& socket) {
  error_code ignored;
  socket.close(ignored);
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(asio::io_context& io) : socket(io) {}
  asio::awaitable<Status> write(std::string_view bytes) override { return write_all(socket, bytes); }
  asio::awaitable<StatusOr<size_t>> read_some(std::span<char> into) override {
    return read_from(socket, into);
  }
  void close() override { close_socket(socket); }

  tcp::socket socket;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(asio::io_context& io, asio::ssl::context& context) : stream(io, context) {}
  asio::awaitable<Status> write(std::string_view bytes) override { return write_all(stream, bytes); }
  asio::awaitable<StatusOr<size_t>> read_some(std::span<char> into) override {
    return read_from(stream, into);
  }
  void close() override { close_socket(stream.next_layer()); }

  asio::ssl::stream<tcp::socket> stream;
};

asio::awaitable<Status> connect(tcp::socket& socket, const tcp::resolver::results_type& addresses,
                                const Endpoint& endpoint) {
  const auto [error, address] = co_await asio::async_connect(socket, addresses, kToken);
  if (error) co_return failure(fmt::format("connecting to {}", endpoint.url()), error);
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  co_return Status();
}

asio::awaitable<Status> shake_hands(TlsTransport& transport, const std::string& host, bool verify) {
  error_code no_address;
  asio::ip::make_address(host, no_address);
  if (no_address)
    SSL_set_tlsext_host_name(transport.stream.native_handle(), host.c_str());  // RFC 6066: names only
  if (verify) transport.stream.set_verify_callback(asio::ssl::host_name_verification(host));
  const auto [error] = co_await transport.stream.async_handshake(asio::ssl::stream_base::client, kToken);
  if (error) co_return failure("TLS", error);
  co_return Status();
}

}  // namespace

StatusOr<std::unique_ptr<Connector>> Connector::make(asio::io_context& io, const Endpoint& endpoint) {
  std::unique_ptr<Connector> connector(new Connector(io, endpoint));
  if (!endpoint.tls) return connector;
  connector->tls_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  if (endpoint.insecure) {
    connector->tls_->set_verify_mode(asio::ssl::verify_none, error);
    return connector;
  }
  connector->tls_->set_verify_mode(asio::ssl::verify_peer, error);
  if (endpoint.ca_certs.empty()) {
    connector->tls_->set_default_verify_paths(error);
  } else {
    connector->tls_->load_verify_file(endpoint.ca_certs, error);
  }
  if (error) {
    return absl::InvalidArgumentError(
        fmt::format("TLS: cannot use the certificates '{}': {}", endpoint.ca_certs, error.message()));
  }
  return connector;
}

asio::awaitable<Status> Connector::resolve() {
  tcp::resolver resolver(io_);
  const std::string port = std::to_string(endpoint_.port);
  auto [error, addresses] = co_await resolver.async_resolve(endpoint_.host, port, kToken);
  if (error) co_return failure("looking up " + endpoint_.host, error);
  addresses_ = std::move(addresses);
  co_return Status();
}

asio::awaitable<Status> Connector::open(std::shared_ptr<Transport>& opening) {
  if (addresses_.empty()) {
    if (Status resolved = co_await resolve(); !resolved.ok()) co_return resolved;
  }
  if (tls_ == nullptr) {
    auto transport = std::make_shared<PlainTransport>(io_);
    opening = transport;
    co_return co_await connect(transport->socket, addresses_, endpoint_);
  }
  auto transport = std::make_shared<TlsTransport>(io_, *tls_);
  opening = transport;
  if (Status connected = co_await connect(transport->stream.next_layer(), addresses_, endpoint_);
      !connected.ok()) {
    co_return connected;
  }
  co_return co_await shake_hands(*transport, endpoint_.host, !endpoint_.insecure);
}

}  // namespace omnibus::client
