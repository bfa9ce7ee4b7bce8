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
#include <sys/socket.h>
#include <unistd.h>

#include "omnibus/base/common/log.h"

#include "listening_socket.h"
#include "session.h"

namespace omnibus {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;
constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kStopPoll = std::chrono::milliseconds(5);
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

// What a library throws for want of memory must not end the thread that serves everybody else.
void run_io(asio::io_context& context) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      log_error("an I/O thread: {}", error.what());
    }
  }
}

class HttpServerImpl final : public HttpServer {
 public:
  explicit HttpServerImpl(std::shared_ptr<ServerState> state)
      : state_(std::move(state)),
        acceptor_(asio::make_strand(state_->context)),
        tick_(acceptor_.get_executor()),
        work_(asio::make_work_guard(state_->context)) {}

  ~HttpServerImpl() override { stop(std::chrono::milliseconds(0)); }

  Status listen(HttpSite site);
  uint16_t port() const override { return port_; }
  StatusOr<LiveSitePtr> prepare(HttpSite site) const override {
    return make_live_site(std::move(site), loopback_);
  }
  void replace(LiveSitePtr site) override { state_->site.set(std::move(site)); }
  void begin_drain() override { state_->draining->store(true); }
  void stop(std::chrono::milliseconds limit) override;

 private:
  asio::awaitable<void> accept_loop();
  asio::awaitable<void> accept_until_it_throws();
  asio::awaitable<void> tick_loop();
  void start_session(StreamSocket socket, const asio::any_io_executor& executor);
  bool wait_for_sessions(std::chrono::milliseconds limit);
  void end_sessions(bool now);

  std::shared_ptr<ServerState> state_;
  Acceptor acceptor_;  // on a strand: the loop and stop() run on different threads
  asio::steady_timer tick_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  ReserveDescriptor reserve_;
  UnixSocketFile socket_file_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
  bool loopback_ = false;  // TCP that only this machine can reach
};

Status HttpServerImpl::listen(HttpSite site) {
  const HttpServerConfig& config = state_->config;
  port_ = config.port;
  if (config.unix_path.empty()) {
    OMNIBUS_RETURN_IF_ERROR(listen_on_tcp(config.host, port_, acceptor_, loopback_));
  } else {
    OMNIBUS_RETURN_IF_ERROR(socket_file_.listen(config.unix_path, acceptor_));
    port_ = 0;
  }
  OMNIBUS_ASSIGN_OR_RETURN(LiveSitePtr live, prepare(std::move(site)));
  state_->site.set(std::move(live));
  asio::co_spawn(acceptor_.get_executor(), accept_loop(), LogException{"the listener"});
  asio::co_spawn(acceptor_.get_executor(), tick_loop(), LogException{"the listener's clock"});
  for (int i = 0; i < std::max(1, config.io_threads); ++i) {
    threads_.emplace_back([state = state_] { run_io(state->context); });
  }
  return {};
}

asio::awaitable<void> HttpServerImpl::tick_loop() {
  while (!state_->stopping.load()) {
    state_->clock.now();
    tick_.expires_after(AwakeClock::kTick);
    co_await tick_.async_wait(kToken);
  }
}

asio::awaitable<void> HttpServerImpl::accept_loop() {
  asio::steady_timer pause(acceptor_.get_executor());
  while (!state_->stopping.load()) {
    try {
      co_await accept_until_it_throws();
    } catch (const std::exception& error) {  // out of memory: this connection is lost, the next may not be
      log_error("cannot take a connection: {}", error.what());
    }
    if (state_->stopping.load()) co_return;
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kToken);
  }
}

// Returns to have a pause, too.
asio::awaitable<void> HttpServerImpl::accept_until_it_throws() {
  for (;;) {
    const asio::any_io_executor executor = asio::make_strand(state_->context);
    auto [error, socket] = co_await acceptor_.async_accept(executor, kToken);
    if (state_->stopping.load()) co_return;
    if (!error) {
      start_session(std::move(socket), executor);
      continue;
    }
    if (error.value() == ECONNABORTED) continue;
    if (error.value() == EMFILE || error.value() == ENFILE) {
      if (state_->metrics->turned_away_lines.admit()) {
        log_warning("out of file descriptors: turning a connection away");
      }
      reserve_.turn_one_away(acceptor_.native_handle());
    }
    co_return;
  }
}

void HttpServerImpl::start_session(StreamSocket socket, const asio::any_io_executor& executor) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);  // not for a Unix socket
  // Left alone, the kernel takes megabytes for a reader that does not read.
  socket.set_option(StreamSocket::send_buffer_size(kSendBuffer), ignored);
  std::shared_ptr<Session> session;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->sessions.size() < static_cast<size_t>(state_->config.max_connections)) {
      session =
          std::make_shared<Session>(state_, executor, make_io(std::move(socket), state_->site.get()->tls));
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
    tick_.cancel();
  });
  end_sessions(false);
  if (!wait_for_sessions(limit)) {
    end_sessions(true);
    if (!wait_for_sessions(std::chrono::seconds(2))) state_->context.stop();
  }
  work_.reset();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  socket_file_.remove();
}

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerConfig config, HttpSite site,
                                                        MetricsRegistry* metrics) {
  auto state = std::make_shared<ServerState>(std::move(config));
  state->metrics = std::make_unique<HttpMetrics>(metrics, &state->engine_clock);
  auto server = std::make_unique<HttpServerImpl>(std::move(state));
  OMNIBUS_RETURN_IF_ERROR(server->listen(std::move(site)));
  return server;
}

}  // namespace omnibus
