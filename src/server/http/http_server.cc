#include "omnibus/server/http/http_server.h"

#include <cerrno>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "omnibus/base/common/log.h"

#include "session.h"

namespace omnibus {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;
constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kStopPoll = std::chrono::milliseconds(5);
constexpr int kBacklog = 4096;
constexpr int kSendBuffer = 128 * 1024;

// One descriptor kept back: at the limit it is given up to accept a connection and turn it away, where the
// queue of the listener would otherwise stay full and accept spin.
class ReserveDescriptor {
 public:
  ReserveDescriptor() { reopen(); }
  ~ReserveDescriptor() { release(); }
  ReserveDescriptor(const ReserveDescriptor&) = delete;
  ReserveDescriptor& operator=(const ReserveDescriptor&) = delete;

  void turn_one_away(int listener) {
    release();
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd >= 0) ::close(fd);
    reopen();
  }

 private:
  void reopen() { fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd_ = -1;
};

Status cannot(const char* what, const std::string& host, uint16_t port, const error_code& error) {
  return absl::UnavailableError(fmt::format("Cannot {} {} port {}: {}", what, host, port, error.message()));
}

Status bind_to(const std::string& host, uint16_t port, asio::io_context& context, tcp::acceptor& acceptor) {
  error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) return cannot("resolve", host, port, error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (error) return cannot("open a socket for", host, port, error);
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  return error ? cannot("listen on", host, port, error) : Status();
}

class HttpServerImpl final : public HttpServer {
 public:
  explicit HttpServerImpl(std::shared_ptr<ServerState> state)
      : state_(std::move(state)),
        acceptor_(asio::make_strand(state_->context)),
        work_(asio::make_work_guard(state_->context)) {}

  ~HttpServerImpl() override { stop(std::chrono::milliseconds(0)); }

  Status listen();
  uint16_t port() const override { return port_; }
  void begin_drain() override { state_->draining->store(true); }
  void stop(std::chrono::milliseconds limit) override;

 private:
  asio::awaitable<void> accept_loop();
  void start_session(tcp::socket socket, const asio::any_io_executor& executor);
  bool wait_for_sessions(std::chrono::milliseconds limit);
  void end_sessions(bool now);

  std::shared_ptr<ServerState> state_;
  tcp::acceptor acceptor_;  // on a strand: the loop and stop() run on different threads
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  ReserveDescriptor reserve_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
};

Status HttpServerImpl::listen() {
  const HttpServerConfig& config = state_->config;
  OMNIBUS_ASSIGN_OR_RETURN(state_->tls, make_tls_context(config.tls));
  OMNIBUS_RETURN_IF_ERROR(bind_to(config.host, config.port, state_->context, acceptor_));
  error_code error;
  acceptor_.listen(kBacklog, error);
  if (error) return cannot("listen on", config.host, config.port, error);
  const tcp::endpoint bound = acceptor_.local_endpoint(error);
  port_ = bound.port();
  state_->access =
      std::make_unique<AccessPolicy>(AccessPolicy::Config{.hosts = config.allowed_hosts,
                                                          .origins = config.allowed_origins,
                                                          .loopback = bound.address().is_loopback(),
                                                          .tls = state_->tls != nullptr});
  asio::co_spawn(acceptor_.get_executor(), accept_loop(), LogException{"the listener"});
  for (int i = 0; i < std::max(1, config.io_threads); ++i) {
    threads_.emplace_back([state = state_] { state->context.run(); });
  }
  return {};
}

asio::awaitable<void> HttpServerImpl::accept_loop() {
  asio::steady_timer pause(acceptor_.get_executor());
  for (;;) {
    const asio::any_io_executor executor = asio::make_strand(state_->context);
    auto [error, socket] = co_await acceptor_.async_accept(executor, kToken);
    if (state_->stopping.load()) co_return;
    if (!error) {
      start_session(std::move(socket), executor);
      continue;
    }
    if (error.value() == EMFILE || error.value() == ENFILE) {
      log_warning("out of file descriptors: turning a connection away");
      reserve_.turn_one_away(acceptor_.native_handle());
    } else if (error.value() == ECONNABORTED) {
      continue;
    }
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kToken);
  }
}

void HttpServerImpl::start_session(tcp::socket socket, const asio::any_io_executor& executor) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  // Left alone, the kernel takes megabytes for a reader that does not read.
  socket.set_option(tcp::socket::send_buffer_size(kSendBuffer), ignored);
  std::shared_ptr<Session> session;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->sessions.size() < static_cast<size_t>(state_->config.max_connections)) {
      session = std::make_shared<Session>(state_, executor, make_io(std::move(socket), state_->tls));
      state_->sessions.emplace(session.get(), session);
    }
  }
  if (session) {
    asio::co_spawn(executor, session->run(), LogException{"a connection"});
    return;
  }
  state_->metrics->connections_refused.add();
  static constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  socket.non_blocking(true, ignored);
  socket.write_some(asio::const_buffer(kFull.data(), kFull.size()), ignored);
  socket.close(ignored);
}

void HttpServerImpl::end_sessions(bool now) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [raw, weak] : state_->sessions) {
      if (auto session = weak.lock()) sessions.push_back(std::move(session));
    }
  }
  for (const auto& session : sessions) session->end(now);
}

bool HttpServerImpl::wait_for_sessions(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    {
      std::lock_guard lock(state_->mutex);
      if (state_->sessions.empty()) return true;
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kStopPoll);
  }
}

void HttpServerImpl::stop(std::chrono::milliseconds limit) {
  if (threads_.empty()) return;
  state_->draining->store(true);
  state_->stopping = true;
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  end_sessions(false);
  if (!wait_for_sessions(limit)) {
    end_sessions(true);
    if (!wait_for_sessions(std::chrono::seconds(2))) state_->context.stop();
  }
  work_.reset();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace

Status HttpServer::check(const HttpServerConfig& config) {
  const auto tls = make_tls_context(config.tls);
  if (!tls.ok()) return tls.status();
  asio::io_context context;
  tcp::acceptor acceptor(context);
  return bind_to(config.host, config.port, context, acceptor);
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerConfig config, const RouteTable* routes,
                                                        const Authenticator* auth, MetricsRegistry* metrics) {
  auto state = std::make_shared<ServerState>(std::move(config));
  state->routes = routes;
  state->auth = auth;
  state->metrics = std::make_unique<HttpMetrics>(metrics, &state->clock);
  auto server = std::make_unique<HttpServerImpl>(std::move(state));
  OMNIBUS_RETURN_IF_ERROR(server->listen());
  return server;
}

}  // namespace omnibus
