// Io: a stream as the session sees it. Not a template parameter, so that TLS adds an implementation and no
// compile time where sessions are.
#pragma once

#include <memory>
#include <tuple>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "tls_context.h"

namespace omnibus {

namespace asio = boost::asio;

// On the connection's strand; one read and one write may be under way at a time.
class Io {
 public:
  using Result = std::tuple<boost::system::error_code, size_t>;
  virtual ~Io() = default;
  // The handshake, if there is one; once, before anything else.
  virtual asio::awaitable<boost::system::error_code> start() = 0;
  virtual asio::awaitable<Result> read(asio::mutable_buffer buffer) = 0;
  virtual asio::awaitable<Result> write(asio::const_buffer buffer) = 0;
  // Says that nothing follows, and FIN. What is read afterwards is to be thrown away.
  virtual asio::awaitable<void> shutdown_send() = 0;
  virtual void cancel() = 0;  // what is pending ends with operation_aborted
  virtual void close() = 0;
};

// A connected socket, TCP's or a Unix one.
using StreamSocket = asio::generic::stream_protocol::socket;

// With a context: TLS.
std::unique_ptr<Io> make_io(StreamSocket socket, TlsContext tls);

}  // namespace omnibus
