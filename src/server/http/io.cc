#include "io.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace omnibus {
namespace {

using boost::system::error_code;
constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
constexpr size_t kRecord = 16 * 1024;      // plain bytes of one TLS record
constexpr size_t kMaxReplies = 64 * 1024;  // bytes of TLS's own messages that the client has not taken
constexpr std::string_view kPlainToTls =
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 30\r\n\r\n"
    "This port speaks HTTPS only.\r\n";

class PlainIo final : public Io {
 public:
  explicit PlainIo(StreamSocket socket) : socket_(std::move(socket)) {}

  asio::awaitable<error_code> start() override { co_return error_code(); }
  asio::awaitable<Result> read(asio::mutable_buffer buffer) override {
    return socket_.async_read_some(buffer, kToken);
  }
  asio::awaitable<Result> write(asio::const_buffer buffer) override {
    return socket_.async_write_some(buffer, kToken);
  }
  asio::awaitable<void> shutdown_send() override {
    socket_.shutdown(StreamSocket::shutdown_send, ignored_);
    co_return;
  }
  void cancel() override { socket_.cancel(ignored_); }
  void close() override { socket_.close(ignored_); }

 private:
  StreamSocket socket_;
  error_code ignored_;
};

// OpenSSL works on two memory buffers, and this class moves them. Asio's own stream would wait for the other
// side's farewell, holds 32 KiB for each idle connection, and takes long to compile.
class TlsIo final : public Io {
 public:
  TlsIo(StreamSocket socket, TlsContext context)
      : socket_(std::move(socket)), context_(std::move(context)), ssl_(SSL_new(context_.get()), SSL_free) {
    socket_.non_blocking(true, ignored_);
    if (ssl_ == nullptr) return;
    from_peer_ = BIO_new(BIO_s_mem());
    to_peer_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), from_peer_, to_peer_);  // takes them
    SSL_set_accept_state(ssl_.get());
  }

  asio::awaitable<error_code> start() override;
  asio::awaitable<Result> read(asio::mutable_buffer buffer) override;
  asio::awaitable<Result> write(asio::const_buffer buffer) override;
  asio::awaitable<void> shutdown_send() override;
  void cancel() override {
    ++cancels_;
    socket_.cancel(ignored_);
  }
  void close() override { socket_.close(ignored_); }

 private:
  error_code take_in();
  asio::awaitable<error_code> fill(uint64_t cancels);
  asio::awaitable<error_code> flush();
  error_code send_replies();

  StreamSocket socket_;
  const TlsContext context_;
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  BIO* from_peer_ = nullptr;
  BIO* to_peer_ = nullptr;
  uint64_t cancels_ = 0;  // how often cancel() was called
  bool flushing_ = false;
  bool broken_ = false;    // a record was cut or is invalid: nothing more can be said in TLS
  bool finished_ = false;  // by shutdown_send
  error_code ignored_;
};

asio::awaitable<error_code> TlsIo::start() {
  const uint64_t cancels = cancels_;
  if (ssl_ == nullptr || from_peer_ == nullptr || to_peer_ == nullptr) co_return asio::error::no_memory;
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int kind = SSL_get_error(ssl_.get(), done);
    const bool plain_http = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
    if (plain_http) {
      broken_ = true;
      co_await socket_.async_write_some(asio::const_buffer(kPlainToTls.data(), kPlainToTls.size()), kToken);
      co_return asio::error::invalid_argument;
    }
    if (const error_code error = co_await flush()) co_return error;
    if (done == 1) co_return error_code();
    if (kind != SSL_ERROR_WANT_READ) {
      broken_ = true;
      co_return asio::error::invalid_argument;
    }
    if (const error_code error = co_await fill(cancels)) co_return error;
  }
}

// What the socket has now; the buffer is on the stack, so that a connection that waits holds none.
error_code TlsIo::take_in() {
  std::array<char, kRecord> bytes;
  error_code error;
  const size_t n = socket_.read_some(asio::buffer(bytes), error);
  if (error == asio::error::would_block || error == asio::error::try_again) return {};
  if (!error) BIO_write(from_peer_, bytes.data(), static_cast<int>(n));
  return error;
}

// Waits for bytes, unless cancel() was called since `cancels` was read: the socket forgets a cancel that
// comes when a wait is over and the coroutine has not gone on yet.
asio::awaitable<error_code> TlsIo::fill(uint64_t cancels) {
  if (cancels != cancels_) co_return asio::error::operation_aborted;
  const auto [error] = co_await socket_.async_wait(StreamSocket::wait_read, kToken);
  co_return error ? error : take_in();
}

// Sends what OpenSSL has written, including what it writes meanwhile. One at a time: start, write and
// shutdown_send follow each other.
asio::awaitable<error_code> TlsIo::flush() {
  flushing_ = true;
  error_code error;
  while (!error && BIO_ctrl_pending(to_peer_) > 0) {
    std::string bytes(BIO_ctrl_pending(to_peer_), '\0');
    bytes.resize(
        static_cast<size_t>(std::max(0, BIO_read(to_peer_, bytes.data(), static_cast<int>(bytes.size())))));
    for (std::string_view rest = bytes; !error && !rest.empty();) {
      const auto [failed, n] =
          co_await socket_.async_write_some(asio::const_buffer(rest.data(), rest.size()), kToken);
      error = failed;
      rest.remove_prefix(n);
    }
  }
  flushing_ = false;
  if (error) broken_ = true;
  co_return error;
}

// What OpenSSL answers while it reads (to an update of keys): as much as the socket takes at once, the rest
// goes before the next write. Never waits, so that a cancelled read cuts no record.
error_code TlsIo::send_replies() {
  char* bytes = nullptr;
  const long size = flushing_ ? 0 : BIO_get_mem_data(to_peer_, &bytes);
  if (size > 0) {
    error_code error;
    std::string sent(socket_.write_some(asio::const_buffer(bytes, static_cast<size_t>(size)), error), '\0');
    if (error && error != asio::error::would_block && error != asio::error::try_again) return error;
    BIO_read(to_peer_, sent.data(), static_cast<int>(sent.size()));
  }
  return BIO_ctrl_pending(to_peer_) > kMaxReplies ? asio::error::connection_reset : error_code();
}

asio::awaitable<Io::Result> TlsIo::read(asio::mutable_buffer buffer) {
  if (finished_ || broken_) co_return co_await socket_.async_read_some(buffer, kToken);
  const uint64_t cancels = cancels_;
  for (;;) {
    ERR_clear_error();
    size_t n = 0;
    const int done = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &n);
    if (done == 1) co_return Result(error_code(), n);
    const int kind = SSL_get_error(ssl_.get(), done);
    if (kind == SSL_ERROR_ZERO_RETURN) co_return Result(asio::error::eof, 0);
    if (kind != SSL_ERROR_WANT_READ) {
      broken_ = true;
      co_return Result(asio::error::connection_reset, 0);
    }
    if (const error_code error = send_replies()) {
      broken_ = true;
      co_return Result(error, 0);
    }
    if (const error_code error = co_await fill(cancels)) co_return Result(error, 0);
  }
}

asio::awaitable<Io::Result> TlsIo::write(asio::const_buffer buffer) {
  if (broken_ || finished_) co_return Result(asio::error::broken_pipe, 0);
  ERR_clear_error();
  size_t n = 0;
  if (SSL_write_ex(ssl_.get(), buffer.data(), std::min(buffer.size(), kRecord), &n) != 1) {
    broken_ = true;
    co_return Result(asio::error::broken_pipe, 0);
  }
  const error_code error = co_await flush();
  co_return Result(error, error ? 0 : n);
}

asio::awaitable<void> TlsIo::shutdown_send() {
  if (!broken_ && !finished_ && SSL_is_init_finished(ssl_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    co_await flush();
  }
  finished_ = true;
  socket_.shutdown(StreamSocket::shutdown_send, ignored_);
}

}  // namespace

std::unique_ptr<Io> make_io(StreamSocket socket, TlsContext tls) {
  if (tls) return std::make_unique<TlsIo>(std::move(socket), std::move(tls));
  return std::make_unique<PlainIo>(std::move(socket));
}

}  // namespace omnibus
