// TLS on a pair of Unix sockets (what one side sends the other has at once), driven by one thread step by
// step: what happens between two steps is the test's choice.
#include "src/server/http/io.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

namespace omnibus {
namespace {

using Local = asio::local::stream_protocol;
using boost::system::error_code;

// A certificate that nobody checks.
TlsContext server_context() {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  return context;
}

// What a coroutine came to, once it has.
struct Outcome {
  std::optional<error_code> error;
  size_t bytes = 0;
};

class TlsIoTest : public testing::Test {
 protected:
  TlsIoTest() : strand_(asio::make_strand(context_)), server_side_(context_), client_(context_) {
    asio::local::connect_pair(server_side_, client_);
    client_.non_blocking(true);
    server_side_.set_option(asio::socket_base::send_buffer_size(4096));
    raw_ = ::dup(server_side_.native_handle());
    io_ = make_io(std::move(server_side_), server_context());

    client_context_.reset(SSL_CTX_new(TLS_client_method()));
    ssl_.reset(SSL_new(client_context_.get()));
    from_server_ = BIO_new(BIO_s_mem());
    to_server_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), from_server_, to_server_);
    SSL_set_connect_state(ssl_.get());
  }
  ~TlsIoTest() override {
    io_->close();
    context_.poll();
    ::close(raw_);
  }

  void SetUp() override {
    Outcome started;
    asio::co_spawn(
        strand_, [this, &started]() -> asio::awaitable<void> { started.error = co_await io_->start(); },
        asio::detached);
    for (int i = 0; i < 1000 && (!started.error || SSL_do_handshake(ssl_.get()) != 1); ++i) {
      SSL_do_handshake(ssl_.get());
      send(sealed());
      context_.poll();
      receive();
    }
    ASSERT_TRUE(started.error && !*started.error);
    read_tickets();
  }

  std::shared_ptr<Outcome> read() {
    return run([this]() { return io_->read(asio::buffer(buffer_)); });
  }
  std::shared_ptr<Outcome> write(std::string_view text) {
    return run([this, text] { return io_->write(asio::const_buffer(text.data(), text.size())); });
  }
  // As far as it comes without more from the client.
  std::shared_ptr<Outcome> run(std::function<asio::awaitable<Io::Result>()> start) {
    auto outcome = std::make_shared<Outcome>();
    asio::co_spawn(
        strand_,
        [start = std::move(start), outcome]() -> asio::awaitable<void> {
          const auto [error, n] = co_await start();
          *outcome = {error, n};
        },
        asio::detached);
    context_.poll();
    return outcome;
  }

  // What is sent need not arrive at once: time for it.
  void settle() {
    for (int i = 0; i < 50; ++i) {
      context_.poll();
      context_.run_one_for(std::chrono::milliseconds(1));
    }
  }
  // Until it is done.
  void finish(const Outcome& outcome) {
    for (int i = 0; i < 5000 && !outcome.error; ++i) {
      if (context_.poll() == 0) context_.run_one_for(std::chrono::milliseconds(1));
    }
  }

  // The client's side. What OpenSSL wants sent:
  std::string sealed() {
    std::string bytes(BIO_ctrl_pending(to_server_), '\0');
    if (!bytes.empty()) BIO_read(to_server_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  void send(std::string_view bytes) {
    if (!bytes.empty()) asio::write(client_, asio::const_buffer(bytes.data(), bytes.size()));
  }
  // Takes what the kernel has; `skip` bytes of it are none of TLS.
  void receive(size_t* skip = nullptr) {
    std::string bytes(65536, '\0');
    error_code error;
    const size_t n = client_.read_some(asio::buffer(bytes), error);
    if (error) return;
    const size_t dropped = skip != nullptr ? std::min(*skip, n) : 0;
    if (skip != nullptr) *skip -= dropped;
    if (n > dropped) BIO_write(from_server_, bytes.data() + dropped, static_cast<int>(n - dropped));
  }
  std::string opened() {
    std::string text(1024, '\0');
    size_t n = 0;
    text.resize(SSL_read_ex(ssl_.get(), text.data(), text.size(), &n) == 1 ? n : 0);
    return text;
  }
  // What the server said, once it has come.
  std::string received(size_t* skip = nullptr) {
    std::string text;
    for (int i = 0; i < 5000 && text.empty(); ++i) {
      receive(skip);
      context_.poll();
      text = skip == nullptr || *skip == 0 ? opened() : "";
      if (text.empty()) context_.run_one_for(std::chrono::milliseconds(1));
    }
    return text;
  }
  void read_tickets() { EXPECT_EQ(opened(), ""); }
  std::string key_updates(int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED), 1);
      EXPECT_EQ(SSL_do_handshake(ssl_.get()), 1);
      bytes += sealed();
    }
    return bytes;
  }
  // Bytes past TLS into the connection, until the kernel takes no more; how many.
  size_t stuff() const {
    const std::string junk(4096, 'x');
    size_t sum = 0;
    for (const size_t size : {junk.size(), size_t{1}}) {
      for (ssize_t n; (n = ::send(raw_, junk.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) {
        sum += static_cast<size_t>(n);
      }
    }
    return sum;
  }

  asio::io_context context_;
  const asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  asio::strand<asio::io_context::executor_type> strand_;
  Local::socket server_side_, client_;
  int raw_ = -1;
  std::unique_ptr<Io> io_;
  std::vector<char> buffer_ = std::vector<char>(1024);
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> client_context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
  BIO* from_server_ = nullptr;
  BIO* to_server_ = nullptr;
};

TEST_F(TlsIoTest, CarriesBytesBothWays) {
  const auto read_done = read();
  EXPECT_FALSE(read_done->error);
  SSL_write(ssl_.get(), "ping", 4);
  send(sealed());
  finish(*read_done);
  ASSERT_TRUE(read_done->error && !*read_done->error);
  EXPECT_EQ(std::string(buffer_.data(), read_done->bytes), "ping");
  const auto write_done = write("pong");
  finish(*write_done);
  EXPECT_EQ(write_done->bytes, 4U);
  EXPECT_EQ(received(), "pong");
}

// A part of a record arrives, and before the read goes on it is cancelled: nothing may wait for the rest.
TEST_F(TlsIoTest, ACancelBetweenBytesAndTheReadThatWaitsForThemIsKept) {
  const auto done = read();
  ASSERT_FALSE(done->error);
  SSL_write(ssl_.get(), "ping", 4);
  const std::string record = sealed();
  asio::post(strand_, [&] {
    send(std::string_view(record).substr(0, 10));
    // The strand is taken: the wait ends on the other thread, the coroutine after this.
    std::thread([this] { context_.run_one_for(std::chrono::seconds(5)); }).join();
    io_->cancel();
  });
  finish(*done);
  ASSERT_TRUE(done->error) << "it waits for the rest of the record";
  EXPECT_EQ(*done->error, asio::error::operation_aborted);
  // The part is not lost for the next read.
  send(std::string_view(record).substr(10));
  const auto rest = read();
  finish(*rest);
  ASSERT_TRUE(rest->error);
  ASSERT_FALSE(*rest->error) << rest->error->message();
  EXPECT_EQ(std::string(buffer_.data(), rest->bytes), "ping");
}

// A read that has something to say must neither let a write pass for sent nor be cut by a cancel.
TEST_F(TlsIoTest, AWriteBesideAReadThatRepliesWaitsForTheSocket) {
  const auto read_done = read();
  size_t junk = stuff();
  send(key_updates(20));
  settle();
  EXPECT_FALSE(read_done->error);
  const auto write_done = write("tail");
  settle();
  EXPECT_FALSE(write_done->error) << "said to be sent while the socket took nothing";
  for (int i = 0; i < 5000 && !write_done->error; ++i) {
    receive(&junk);
    context_.poll();
    if (!write_done->error) context_.run_one_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(write_done->error && !*write_done->error);
  io_->cancel();
  finish(*read_done);
  ASSERT_TRUE(read_done->error);
  EXPECT_EQ(*read_done->error, asio::error::operation_aborted);
  EXPECT_EQ(received(&junk), "tail");
}

TEST_F(TlsIoTest, ACancelledReadLeavesItsReplyToTheNextWrite) {
  const auto read_done = read();
  size_t junk = stuff();
  send(key_updates(20));
  settle();
  io_->cancel();
  finish(*read_done);
  ASSERT_TRUE(read_done->error);
  EXPECT_EQ(*read_done->error, asio::error::operation_aborted);
  const auto write_done = write("tail");
  EXPECT_EQ(received(&junk), "tail");
  EXPECT_TRUE(write_done->error && !*write_done->error);
}

// A client that makes the server reply and takes no reply: its connection ends before memory does. (OpenSSL
// itself ends those that send nothing but updates.)
TEST_F(TlsIoTest, RepliesThatNobodyTakesEndTheConnection) {
  stuff();
  size_t rounds = 0;
  for (error_code error; !error && rounds < 1000; ++rounds) {
    const auto done = read();
    std::string bytes = key_updates(20);
    SSL_write(ssl_.get(), "x", 1);
    send(bytes + sealed());
    finish(*done);
    ASSERT_TRUE(done->error) << "round " << rounds;
    error = *done->error;
    EXPECT_TRUE(!error || error == asio::error::connection_reset) << error.message();
  }
  EXPECT_GT(rounds, 50U);
  EXPECT_LT(rounds, 500U);
}

}  // namespace
}  // namespace omnibus
