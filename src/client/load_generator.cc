#include "omnibus/client/load_generator.h"

#include <algorithm>
#include <exception>
#include <list>
#include <memory>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "answer_reader.h"
#include "exchange.h"
#include "transport.h"

namespace omnibus::client {
namespace {

constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
// What a coroutine throws comes out of io_context::run().
constexpr auto kRethrow = [](const std::exception_ptr& thrown) {
  if (thrown) std::rethrow_exception(thrown);
};
constexpr auto kTick = std::chrono::milliseconds(50);

class LoadRun {
 public:
  LoadRun(const LoadJob& job, const Clock& clock, const std::atomic<bool>& stop,
          const std::function<void(const LoadProgress&)>& on_progress)
      : job_(job), clock_(clock), stop_(stop), on_progress_(on_progress) {}

  StatusOr<LoadResult> run() {
    OMNIBUS_ASSIGN_OR_RETURN(connector_, Connector::make(io_, job_.endpoint));
    result_.records.resize(job_.plan.size());
    for (size_t i = 0; i < job_.plan.size(); ++i) result_.records[i].planned = job_.plan[i];
    progress_.planned = static_cast<int64_t>(job_.plan.size());
    start_ = clock_.now_ns();
    result_.start = start_;
    asio::co_spawn(io_, dispatch(), kRethrow);
    asio::co_spawn(io_, watch(), kRethrow);
    io_.run();
    idle_.clear();
    finish();
    return std::move(result_);
  }

 private:
  // A request under way: what the watcher needs in order to end it.
  struct Active {
    RequestRecord* record = nullptr;
    std::shared_ptr<Transport> transport;
    FailureKind ended_as = FailureKind::kNone;  // set by the watcher
  };

  MonotonicNs now() const { return clock_.now_ns() - start_; }
  bool full() const { return job_.max_concurrency > 0 && progress_.running() >= job_.max_concurrency; }

  asio::awaitable<void> wait_until(MonotonicNs at) {
    while (now() < at && !stop_.load()) {
      pause_.expires_after(std::chrono::nanoseconds(at - now()));
      co_await pause_.async_wait(kToken);
    }
  }

  asio::awaitable<void> dispatch() {
    for (size_t i = 0; i < job_.plan.size() && !stop_.load(); ++i) {
      co_await wait_until(job_.plan[i].at);
      while (full() && !stop_.load()) {
        pause_.expires_after(std::chrono::hours(1));  // ended by the next request that is done
        waiting_for_slot_ = true;
        co_await pause_.async_wait(kToken);
        waiting_for_slot_ = false;
      }
      if (stop_.load()) break;
      ++progress_.sent;
      result_.peak_concurrency = std::max(result_.peak_concurrency, progress_.running());
      asio::co_spawn(io_, send(i), kRethrow);
    }
    dispatched_ = true;
    if (progress_.running() == 0) tick_.cancel();
  }

  asio::awaitable<void> send(size_t i) {
    RequestRecord& record = result_.records[i];
    record.sent = now();
    result_.worst_lag = std::max(result_.worst_lag, record.sent - record.planned.at);
    active_.push_back({&record, nullptr});
    const auto active = std::prev(active_.end());
    co_await converse(*active, i);
    if (active->ended_as != FailureKind::kNone) {
      record.failure = active->ended_as;
      record.error = record.failure == FailureKind::kTimeout ? "no whole answer within the time-out"
                                                             : "the run was stopped";
    }
    if (record.ended == 0 || !record.ok()) record.ended = now();
    active_.erase(active);
    ++progress_.done;
    progress_.failed += record.ok() ? 0 : 1;
    if (waiting_for_slot_) pause_.cancel();
    if (dispatched_ && progress_.running() == 0) tick_.cancel();
  }

  // Takes a kept connection or opens one, sends, reads.
  asio::awaitable<void> converse(Active& active, size_t i) {
    RequestRecord& record = *active.record;
    const std::string request = request_bytes(job_.endpoint, "POST", job_.path, job_.bodies[i]);
    for (bool fresh = idle_.empty();; fresh = true) {
      if (fresh) {
        ++result_.connections;
        if (const Status opened = co_await connector_->open(active.transport); !opened.ok()) {
          record.failure = FailureKind::kConnect;
          record.error = status_message(opened);
          co_return;
        }
      } else {
        active.transport = std::move(idle_.back());
        idle_.pop_back();
      }
      AnswerReader reader(&record, job_.stream, start_, &progress_.outputs);
      AnswerSink sink;
      sink.on_head = [&reader](int status, std::string_view type) { reader.on_head(status, type); };
      sink.on_body = [&reader](std::string_view bytes, MonotonicNs at) { reader.on_body(bytes, at); };
      sink.too_long = [&reader] { return reader.too_long(); };
      const ExchangeResult result = co_await exchange(*active.transport, request, std::move(sink), clock_);
      if (result.whole) {
        reader.finish(clock_.now_ns());
        if (result.keep_alive) idle_.push_back(std::move(active.transport));
        co_return;
      }
      // A kept connection that the server has closed meanwhile is no failure of the server's.
      if (!fresh && !result.any_byte && active.ended_as == FailureKind::kNone) {
        ++result_.retries;
        continue;
      }
      if (record.ok() || record.failure == FailureKind::kStatus) {
        record.failure = absl::IsInternal(result.status) ? FailureKind::kMalformed : FailureKind::kClosed;
        record.error = status_message(result.status);
      }
      co_return;
    }
  }

  // Ends what takes too long or shall stop, and tells how it goes.
  asio::awaitable<void> watch() {
    while (!dispatched_ || progress_.running() > 0) {
      tick_.expires_after(kTick);
      co_await tick_.async_wait(kToken);
      const bool stopping = stop_.load();
      if (stopping) pause_.cancel();
      for (Active& active : active_) {
        const bool late = now() - active.record->sent > job_.request_timeout;
        if (!stopping && !late) continue;
        if (active.ended_as == FailureKind::kNone) {
          active.ended_as = late ? FailureKind::kTimeout : FailureKind::kCancelled;
        }
        if (active.transport) active.transport->close();
      }
      tell();
    }
  }

  void tell() {
    progress_.elapsed = now();
    if (on_progress_) on_progress_(progress_);
  }

  void finish() {
    MonotonicNs first = 0, last = 0;
    bool any = false;
    for (RequestRecord& record : result_.records) {
      if (record.ended == 0) {
        record.failure = FailureKind::kCancelled;
        record.error = "the run was stopped before it was sent";
        continue;
      }
      first = any ? std::min(first, record.sent) : record.sent;
      last = std::max(last, record.ended);
      any = true;
    }
    result_.duration = last - first;
    tell();
  }

  const LoadJob& job_;
  const Clock& clock_;
  const std::atomic<bool>& stop_;
  const std::function<void(const LoadProgress&)>& on_progress_;
  asio::io_context io_{1};
  std::unique_ptr<Connector> connector_;
  std::vector<std::shared_ptr<Transport>> idle_;
  std::list<Active> active_;
  asio::steady_timer pause_{io_}, tick_{io_};
  bool waiting_for_slot_ = false, dispatched_ = false;
  MonotonicNs start_ = 0;
  LoadProgress progress_;
  LoadResult result_;
};

}  // namespace

StatusOr<LoadResult> run_load(const LoadJob& job, const Clock& clock, const std::atomic<bool>& stop,
                              const std::function<void(const LoadProgress&)>& on_progress) {
  if (job.plan.size() != job.bodies.size()) {
    return absl::InvalidArgumentError("a load needs one body for each planned request");
  }
  // The failures of Asio's own that are no error codes (memory, timers).
  try {
    return LoadRun(job, clock, stop, on_progress).run();
  } catch (const std::exception& e) {
    return absl::InternalError(fmt::format("the load generator failed: {}", e.what()));
  }
}

std::string failure_name(const RequestRecord& record) {
  switch (record.failure) {
    case FailureKind::kNone:
      return "none";
    case FailureKind::kConnect:
      return "connect";
    case FailureKind::kClosed:
      return "closed";
    case FailureKind::kTimeout:
      return "timeout";
    case FailureKind::kStatus:
      return fmt::format("http {}", record.http_status);
    case FailureKind::kMalformed:
      return "malformed";
    case FailureKind::kError:
      return "error";
    case FailureKind::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace omnibus::client
