#include "session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "omnibus/base/common/log.h"

#include "deadline_header.h"
#include "http_error.h"

namespace omnibus {
namespace {

constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
constexpr size_t kHeadRead = 4 * 1024;
constexpr size_t kBodyRead = 64 * 1024;
// Requests sent ahead of the answer to an earlier one may take this much; more ends the connection.
constexpr size_t kMaxPipelinedBytes = 64 * 1024;
// What is read and thrown away after an early answer, so that a reset does not eat it.
constexpr size_t kLingerBytes = 1024 * 1024;
constexpr auto kLingerTime = std::chrono::milliseconds(500);
// A body that comes more slowly than this uses up its timeout.
constexpr uint64_t kSlowestBodyBytesPerMs = 64;
constexpr size_t kMaxQuotedTarget = 128;
constexpr int kClientGone = 499;  // nginx's; never sent

// The handler's end of an outbox.
class OutboxReply final : public Reply {
 public:
  explicit OutboxReply(std::shared_ptr<Outbox> box) : box_(std::move(box)) {}
  ~OutboxReply() override { box_->abandon(); }
  OutboxReply(const OutboxReply&) = delete;
  OutboxReply& operator=(const OutboxReply&) = delete;

  void send(HttpResponse response) override { box_->send(std::move(response)); }
  void begin(HttpResponse head) override { box_->begin(std::move(head)); }
  void write(std::string bytes) override { box_->write(std::move(bytes)); }
  void end() override { box_->end(); }
  size_t backlog() const override { return box_->backlog(); }
  void on_gone(std::function<void()> callback) override { box_->on_gone(std::move(callback)); }

 private:
  std::shared_ptr<Outbox> box_;
};

Status no_route(const HttpRequest& request, const std::string& allowed) {
  const std::string wanted = request.method + " " + request.path;
  const std::string asked =
      wanted.size() <= kMaxQuotedTarget ? wanted : wanted.substr(0, kMaxQuotedTarget) + "...";
  if (allowed.empty()) return http_error(404, "There is no route " + asked);
  return http_error(405, "There is no " + asked + ": this route has " + allowed, "method_not_allowed");
}

// Null where there is no memory for it: the connection is lost then.
std::optional<Outbox::Batch> next_batch(Outbox& box) {
  try {
    return box.take();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// While it lives, a request is being answered.
class InProgress {
 public:
  explicit InProgress(Gauge gauge) : gauge_(gauge) { gauge_.add(1); }
  ~InProgress() { gauge_.add(-1); }
  InProgress(const InProgress&) = delete;
  InProgress& operator=(const InProgress&) = delete;

 private:
  const Gauge gauge_;
};

}  // namespace

void LogException::operator()(const std::exception_ptr& thrown) const {
  if (!thrown) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    log_error("{} ended by an exception: {}", where, error.what());
  } catch (...) {  // what a library may throw that is no std::exception: logged, it must not end the server
    log_error("{} ended by an exception of unknown type", where);
  }
}

Session::Session(std::shared_ptr<ServerState> state, asio::any_io_executor executor, std::unique_ptr<Io> io)
    : state_(std::move(state)),
      executor_(executor),
      io_(std::move(io)),
      deadline_(executor),
      wake_(executor) {
  state_->metrics->connections.add(1);
  state_->metrics->connections_total.add();
}

Session::~Session() {
  state_->metrics->connections.add(-1);
  std::lock_guard lock(state_->mutex);
  state_->sessions.erase(this);
}

void Session::wake() {
  asio::post(executor_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake_.cancel();
  });
}

void Session::end(bool now) {
  asio::post(executor_, [weak = weak_from_this(), now] {
    auto self = weak.lock();
    if (!self) return;
    if (now) self->io_->close();
    if (self->idle_) self->io_->cancel();
  });
}

asio::awaitable<void> Session::run() {
  const auto self = shared_from_this();
  idle_ = true;
  arm(after(state_->config.header_timeout), true);
  const boost::system::error_code failed = co_await io_->start();
  disarm();
  if (!failed) {
    while (co_await serve_one()) {
    }
  }
  arm(after(kLingerTime), true);
  co_await io_->shutdown_send();
  disarm();
  io_->close();
}

void Session::arm(TimePoint deadline, bool close) { await_deadline(++timer_generation_, deadline, close); }

void Session::await_deadline(uint64_t generation, TimePoint deadline, bool close) {
  deadline_.expires_at(state_->clock.steady(deadline));
  deadline_.async_wait(
      [weak = weak_from_this(), generation, deadline, close](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self || self->timer_generation_ != generation) return;
        if (self->state_->clock.now() < deadline) {  // the process stood still meanwhile
          self->await_deadline(generation, deadline, close);
          return;
        }
        self->timed_out_ = true;
        if (close) {
          self->io_->close();
        } else {
          self->io_->cancel();
        }
      });
}

void Session::disarm() {
  ++timer_generation_;
  deadline_.cancel();
}

asio::awaitable<Session::Read> Session::read_more(TimePoint deadline, size_t size) {
  timed_out_ = false;
  arm(deadline, false);
  const size_t old = in_.size();
  in_.resize(old + size);
  const auto [error, n] = co_await io_->read(asio::buffer(in_.data() + old, size));
  in_.resize(old + n);
  disarm();
  if (n > 0) co_return Read::kData;
  co_return timed_out_ ? Read::kTimeout : Read::kClosed;
}

asio::awaitable<bool> Session::write_all(std::string_view bytes, Outbox* box) {
  while (!bytes.empty()) {
    timed_out_ = false;
    arm(after(state_->config.stall_timeout), true);
    const auto [error, n] = co_await io_->write(asio::const_buffer(bytes.data(), bytes.size()));
    disarm();
    if (error) {
      if (timed_out_) state_->metrics->slow_readers.add();
      co_return false;
    }
    sent_bytes_ += n;
    if (box != nullptr) box->sent(n);
    bytes.remove_prefix(n);
  }
  co_return true;
}

asio::awaitable<bool> Session::serve_one() {
  RequestReader reader;
  site_.reset();
  begun_ = state_->clock.now();
  sent_bytes_ = 0;
  if (!co_await read_head(reader)) co_return false;
  const InProgress in_progress(state_->metrics->in_progress);
  begun_ = state_->clock.now();
  site_ = state_->site.get();
  bool keep = false, no_memory = false;
  const Route* route = co_await admit(reader, keep);
  if (route == nullptr) co_return keep;
  try {
    if (!co_await read_body(reader)) co_return false;
  } catch (const std::bad_alloc&) {
    no_memory = true;
  }
  if (no_memory) {
    co_await refuse(reader, out_of_memory());
    co_return false;
  }

  HttpRequest shown;  // what is left of it to count, once the handler has it
  shown.method = reader.request().method;
  shown.tenant = reader.request().tenant;
  shown.request_id = reader.request().request_id;
  shown.trace_id = reader.request().trace_id;
  const uint64_t body_bytes = reader.body_bytes();
  auto box = std::make_shared<Outbox>(answer_context(reader.request(), reader.request().keep_alive),
                                      [weak = weak_from_this()] {
                                        if (auto self = weak.lock()) self->wake();
                                      });
  auto reply = std::make_shared<OutboxReply>(box);
  try {
    route->handler(std::move(reader.request()), reply);
  } catch (const std::bad_alloc&) {
    reply->send(state_->config.render_error(out_of_memory(), route->pattern));
  } catch (const std::exception& error) {
    log_error("handler of {}: {}", route->pattern, error.what());
    box->abandon();
  }
  reply.reset();  // who answers has it now, or nobody does
  const bool again = co_await answer(box);
  // No status: the client left before there was one.
  count(route, shown, box->status() == 0 ? kClientGone : box->status(), body_bytes);
  co_return again;
}

asio::awaitable<bool> Session::read_head(RequestReader& reader) {
  idle_ = in_.empty();
  TimePoint deadline = after(idle_ ? state_->config.idle_timeout : state_->config.header_timeout);
  for (;;) {
    const auto progress = reader.feed(in_);
    if (!progress.ok()) {
      co_await refuse(reader, progress.status());
      co_return false;
    }
    if (*progress == RequestReader::Progress::kHead) co_return true;
    if (idle_ && state_->stopping.load()) co_return false;
    const Read read = co_await read_more(deadline, kHeadRead);
    if (read == Read::kClosed || (read == Read::kTimeout && idle_)) co_return false;
    if (read == Read::kTimeout) {
      co_await refuse(reader, http_error(408, "The request header took too long"));
      co_return false;
    }
    if (idle_) {
      begun_ = state_->clock.now();
      deadline = after(state_->config.header_timeout);
    }
    idle_ = false;
  }
}

Status Session::judge(RequestReader& reader, const RouteTable::Match& match) {
  HttpRequest& request = reader.request();
  const Route* route = match.route;
  OMNIBUS_RETURN_IF_ERROR(site_->access.check_host(request));
  OMNIBUS_RETURN_IF_ERROR(site_->access.check_origin(request, reader.has_body()));
  // A path that does not exist is nobody's business without a key either.
  OMNIBUS_ASSIGN_OR_RETURN(request.tenant,
                           site_->auth->check(route != nullptr ? route->scope : Scope::kInference, request));
  if (route == nullptr && match.allow.empty()) OMNIBUS_RETURN_IF_ERROR(site_->elsewhere);
  if (route == nullptr) return no_route(request, match.allow);
  OMNIBUS_ASSIGN_OR_RETURN(request.deadline_ns, header_deadline(request, state_->engine_clock.now_ns()));
  return reader.accept_body(std::min(route->max_body_bytes, state_->config.max_body_bytes));
}

// Everything that can be decided without the body.
asio::awaitable<const Route*> Session::admit(RequestReader& reader, bool& keep) {
  HttpRequest& request = reader.request();
  keep = request.keep_alive && !reader.has_body();
  RouteTable::Match match = site_->routes->find(request.method, request.path);
  HttpResponse response;
  const bool known = request.path == "*" || !match.allow.empty();
  if (request.method == "OPTIONS" && known && site_->access.check_host(request).ok()) {
    const std::string methods = match.allow.empty() ? "GET, HEAD, POST, OPTIONS" : match.allow;
    response.status = 204;
    response.content_type.clear();
    response.headers = site_->access.preflight_headers(request, methods);
    response.headers.emplace_back("Allow", methods);
    keep = co_await refuse(reader, std::move(response), keep, match.route);
    co_return nullptr;
  }
  const Status verdict = judge(reader, match);
  if (!verdict.ok()) {
    response = state_->config.render_error(verdict, request.path);
    if (response.status == 405) response.headers.emplace_back("Allow", match.allow);
    if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    keep = co_await refuse(reader, std::move(response), keep, match.route);
    co_return nullptr;
  }
  request.path_parameter = std::move(match.parameter);
  co_return match.route;
}

asio::awaitable<bool> Session::read_body(RequestReader& reader) {
  if (!reader.has_body()) co_return true;
  if (reader.wants_continue() && !co_await write_all("HTTP/1.1 100 Continue\r\n\r\n", nullptr))
    co_return false;
  const auto lease = std::make_shared<BodyLease>(state_->bodies);
  reader.request().body_lease = lease;
  const TimePoint started = state_->clock.now();
  for (;;) {
    const auto progress = reader.feed(in_);
    if (!progress.ok()) {
      co_await refuse(reader, progress.status());
      co_return false;
    }
    if (!lease->grow_to(reader.body_bytes())) {
      co_await refuse(reader, absl::UnavailableError("There are too many request bodies at once"));
      co_return false;
    }
    if (*progress == RequestReader::Progress::kComplete) break;
    // One deadline for all of it, moved only by bytes that came: a trickle does not hold the connection.
    const auto earned = std::chrono::milliseconds(reader.body_bytes() / kSlowestBodyBytesPerMs);
    const Read read = co_await read_more(started + state_->config.body_timeout + earned, kBodyRead);
    if (read == Read::kClosed) co_return false;
    if (read == Read::kTimeout) {
      co_await refuse(reader, http_error(408, "The request body took too long"));
      co_return false;
    }
  }
  in_.shrink_to_fit();
  co_return true;
}

AnswerContext Session::answer_context(const HttpRequest& request, bool keep) const {
  AnswerContext context;
  context.request_id = request.request_id.empty() ? "-" : request.request_id;
  const LiveSitePtr site = site_ ? site_ : state_->site.get();  // null: the head was no head
  context.headers = site->access.answer_headers(request);
  context.head_only = request.method == "HEAD";
  context.http_1_0 = request.http_1_0;
  context.keep_alive = keep;
  context.draining = state_->draining;
  return context;
}

asio::awaitable<void> Session::refuse(RequestReader& reader, const Status& error) {
  HttpResponse response = state_->config.render_error(error, reader.request().path);
  co_await refuse(reader, std::move(response), false, nullptr);
}

asio::awaitable<bool> Session::refuse(RequestReader& reader, HttpResponse response, bool keep,
                                      const Route* route) {
  Outbox box(answer_context(reader.request(), keep), [] {});
  const int status = response.status;
  box.send(std::move(response));
  const Outbox::Batch batch = box.take();
  const bool written = co_await write_all(batch.bytes, nullptr);
  count(route, reader.request(), status, reader.body_bytes());
  if (!written) co_return false;
  if (batch.close) co_await linger();
  co_return !batch.close;
}

asio::awaitable<void> Session::linger() {
  arm(after(kLingerTime), true);
  co_await io_->shutdown_send();
  disarm();
  const auto deadline = after(kLingerTime);
  for (size_t dropped = 0; dropped < kLingerBytes && state_->clock.now() < deadline;) {
    in_.clear();
    if (co_await read_more(deadline, kBodyRead) != Read::kData) break;
    dropped += in_.size();
  }
  in_.clear();
}

asio::awaitable<bool> Session::answer(std::shared_ptr<Outbox> box) {
  bool finished = false, close = false;
  client_gone_ = false;
  for (;;) {
    const std::optional<Outbox::Batch> batch = next_batch(*box);
    if (!batch) break;
    if (!batch->bytes.empty() && !co_await write_all(batch->bytes, box.get())) break;
    if (batch->done) {
      finished = true;
      close = batch->close;
      break;
    }
    if (client_gone_) break;
    if (!batch->bytes.empty()) continue;
    if (watch_done_) {
      watch_stopping_ = watch_done_ = false;
      asio::co_spawn(executor_, watch(box), [self = shared_from_this()](const std::exception_ptr& thrown) {
        LogException{"the watch of a connection"}(thrown);
        if (!thrown) return;
        self->client_gone_ = self->watch_done_ = true;
        self->wake_.cancel();
      });
    }
    wake_.expires_at(AwakeClock::Steady::time_point::max());
    co_await wake_.async_wait(kToken);
  }
  if (!finished) box->set_gone();
  watch_stopping_ = true;
  io_->cancel();
  while (!watch_done_) {
    wake_.expires_at(AwakeClock::Steady::time_point::max());
    co_await wake_.async_wait(kToken);
  }
  co_return finished && !close && !client_gone_ && !state_->stopping.load();
}

// Reads ahead while the answer is made: what comes is the next request; an end or an error means that nobody
// waits any more (a half-close counts).
asio::awaitable<void> Session::watch(std::shared_ptr<Outbox> box) {
  const auto self = shared_from_this();
  while (!watch_stopping_ && !client_gone_) {
    const size_t old = in_.size();
    in_.resize(old + kHeadRead);
    const auto [error, n] = co_await io_->read(asio::buffer(in_.data() + old, kHeadRead));
    in_.resize(old + n);
    if ((error && !watch_stopping_) || in_.size() > kMaxPipelinedBytes) {
      client_gone_ = true;
      box->set_gone();
    }
    if (error) break;
  }
  watch_done_ = true;
  wake_.cancel();
}

void Session::count(const Route* route, const HttpRequest& request, int status,
                    uint64_t request_bytes) const {
  HttpExchange exchange;
  exchange.handler = route != nullptr ? std::string_view(route->pattern) : "none";
  exchange.method = request.method;
  exchange.status = status;
  exchange.seconds = std::chrono::duration<double>(state_->clock.now() - begun_).count();
  exchange.request_bytes = request_bytes;
  exchange.response_bytes = sent_bytes_;
  state_->metrics->count(exchange);
  log_exchange(exchange, request);
}

// What clients do right is for the debug log (generations have a line of their own, the engine's); refused
// and failed requests are of interest, and clients can cause any number of them.
void Session::log_exchange(const HttpExchange& exchange, const HttpRequest& request) const {
  LogLevel level =
      exchange.status < 400 || exchange.status == kClientGone ? LogLevel::kDebug : LogLevel::kInfo;
  if (exchange.status >= 500) level = LogLevel::kWarning;
  if (!log_enabled(level)) return;
  if (level != LogLevel::kDebug && !state_->metrics->refused_lines.admit()) return;
  log_line(level, level == LogLevel::kDebug ? "http request" : "http request not served",
           {{"request_id", request.request_id},
            {"trace_id", request.trace_id},
            {"key", request.tenant},
            {"method", std::string_view(method_label(exchange.method))},
            {"handler", exchange.handler},
            {"status", int64_t{exchange.status}},
            {"duration_ms", exchange.seconds * 1e3}});
}

}  // namespace omnibus
