// Session: one connection. A coroutine on a strand reads requests, calls handlers and sends what their
// outboxes hold; beside it, while an answer is awaited, a second one watches for the client going away.
// Included by the one translation unit that knows Asio.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "omnibus/base/common/clock.h"
#include "omnibus/server/http/http_server.h"

#include "awake_clock.h"
#include "byte_budget.h"
#include "http_metrics.h"
#include "io.h"
#include "live_site.h"
#include "outbox.h"
#include "request_reader.h"

namespace omnibus {

class Session;

// Completes a coroutine that nobody waits for: what it threw is logged.
struct LogException {
  const char* where;
  void operator()(const std::exception_ptr& thrown) const;
};

// Shared by the listener and its sessions.
struct ServerState {
  explicit ServerState(HttpServerConfig c)
      : config(std::move(c)), bodies(std::make_shared<ByteBudget>(config.max_buffered_bytes)) {}

  const HttpServerConfig config;
  const std::shared_ptr<ByteBudget> bodies;
  SiteSlot site;  // filled once the listener is bound
  AwakeClock clock;
  const SteadyClock engine_clock;
  std::unique_ptr<HttpMetrics> metrics;
  asio::io_context context;
  // Outboxes share it: one may outlive the server.
  const std::shared_ptr<std::atomic<bool>> draining = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::map<Session*, std::weak_ptr<Session>> sessions;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // `executor` is a strand; everything but wake() and end() runs on it.
  Session(std::shared_ptr<ServerState> state, asio::any_io_executor executor, std::unique_ptr<Io> io);
  ~Session();

  // Serves requests until the connection ends.
  asio::awaitable<void> run();
  // Any thread: something is in the outbox.
  void wake();
  // Any thread: end when idle (or now).
  void end(bool now);

 private:
  using TimePoint = AwakeClock::TimePoint;

  asio::awaitable<bool> serve_one();
  asio::awaitable<bool> read_head(RequestReader& reader);
  // The route, or nullptr after an error has been answered (then `keep` says whether the connection lives).
  asio::awaitable<const Route*> admit(RequestReader& reader, bool& keep);
  // Whether the request may come this far: host, page, key, route, size.
  Status judge(RequestReader& reader, const RouteTable::Match& match);
  asio::awaitable<bool> read_body(RequestReader& reader);
  asio::awaitable<bool> answer(std::shared_ptr<Outbox> box);
  asio::awaitable<void> watch(std::shared_ptr<Outbox> box);
  // Answers, counts, and says whether the connection lives on. `route`: null where there is none.
  asio::awaitable<bool> refuse(RequestReader& reader, HttpResponse response, bool keep, const Route* route);
  asio::awaitable<void> refuse(RequestReader& reader, const Status& error);

  enum class Read { kData, kTimeout, kClosed };
  asio::awaitable<Read> read_more(TimePoint deadline, size_t size);
  asio::awaitable<bool> write_all(std::string_view bytes, Outbox* box);
  asio::awaitable<void> linger();
  TimePoint after(std::chrono::milliseconds time) const { return state_->clock.now() + time; }
  void arm(TimePoint deadline, bool close);
  void await_deadline(uint64_t generation, TimePoint deadline, bool close);
  void disarm();
  AnswerContext answer_context(const HttpRequest& request, bool keep) const;
  void count(const Route* route, const HttpRequest& request, int status, uint64_t request_bytes) const;
  void log_exchange(const HttpExchange& exchange, const HttpRequest& request) const;

  const std::shared_ptr<ServerState> state_;
  asio::any_io_executor executor_;
  std::unique_ptr<Io> io_;
  LiveSitePtr site_;  // of the request at hand; null between requests
  asio::steady_timer deadline_;
  asio::steady_timer wake_;
  uint64_t timer_generation_ = 0;
  std::string in_;           // read, not yet consumed
  TimePoint begun_{};        // when the request at hand had its whole head, or (without one) its first byte
  uint64_t sent_bytes_ = 0;  // of its answer
  bool timed_out_ = false, idle_ = false, client_gone_ = false;
  bool watch_stopping_ = false, watch_done_ = true;
};

}  // namespace omnibus
