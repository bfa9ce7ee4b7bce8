#include "outbox.h"

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/clock.h"

namespace omnibus {
namespace {

std::string http_date() {
  const std::time_t now = wall_clock_seconds();
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  const size_t n = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, n};
}

}  // namespace

Outbox::Outbox(AnswerContext context, std::function<void()> wake)
    : context_(std::move(context)), wake_(std::move(wake)), close_(!context_.keep_alive) {}

// Called with the lock held.
void Outbox::start(HttpResponse response, Framing framing) {
  if (framing == Framing::kUntilClosed || (context_.draining && context_.draining->load())) close_ = true;
  head_ = head(response, framing);
  if (!context_.head_only) pending_ = std::move(response.body);
  status_ = response.status;
  chunked_ = framing == Framing::kChunked;
  begun_ = true;
  ended_ = framing == Framing::kLength;
}

std::string Outbox::head(const HttpResponse& response, Framing framing) const {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: omnibus\r\nDate: {}\r\nx-request-id: {}\r\nrequest-id: {}\r\n",
      response.status, http_reason(response.status), http_date(), context_.request_id, context_.request_id);
  if (!response.content_type.empty()) {
    out += fmt::format("Content-Type: {}\r\nX-Content-Type-Options: nosniff\r\n", response.content_type);
  }
  out += context_.headers;
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (framing == Framing::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (framing == Framing::kLength && response.status != 204) {
    out += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  if (close_) {
    out += "Connection: close\r\n";
  } else if (context_.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
  return out;
}

void Outbox::start_no_answer() noexcept {
  try {
    HttpResponse response;
    response.status = 500;
    response.content_type = "text/plain; charset=utf-8";
    response.body = "The server gave no answer\n";
    start(std::move(response), Framing::kLength);
  } catch (const std::bad_alloc&) {  // the connection ends without a word
    status_ = 500;
    begun_ = ended_ = true;
  }
}

void Outbox::send(HttpResponse response) {
  {
    std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    start(std::move(response), Framing::kLength);
  }
  wake_();
}

void Outbox::begin(HttpResponse response) {
  {
    std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    start(std::move(response), context_.http_1_0 ? Framing::kUntilClosed : Framing::kChunked);
  }
  wake_();
}

void Outbox::write(std::string bytes) {
  {
    std::lock_guard lock(mutex_);
    if (!begun_ || ended_ || gone_) return;
    if (!context_.head_only) pending_ += bytes;
  }
  wake_();
}

void Outbox::end() {
  {
    std::lock_guard lock(mutex_);
    if (!begun_ || ended_) return;
    ended_ = true;
  }
  wake_();
}

void Outbox::abandon() {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    close_ = closed_ = true;
    if (!begun_) start_no_answer();
  }
  wake_();
}

size_t Outbox::backlog() const {
  std::lock_guard lock(mutex_);
  return pending_.size() + in_flight_;
}

void Outbox::on_gone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ && !gone_) return;
    if (!gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

Outbox::Batch Outbox::take() {
  std::lock_guard lock(mutex_);
  Batch batch;
  batch.bytes = std::exchange(head_, {});
  if (chunked_ && !pending_.empty()) {
    batch.bytes += fmt::format("{:x}\r\n", pending_.size());
    batch.bytes += pending_;
    batch.bytes += "\r\n";
  } else {
    batch.bytes += pending_;
  }
  pending_.clear();
  pending_.shrink_to_fit();
  batch.done = ended_ || closed_;
  batch.close = batch.done && (close_ || closed_);
  if (ended_ && std::exchange(chunked_, false) && !context_.head_only) batch.bytes += "0\r\n\r\n";
  in_flight_ = batch.bytes.size();
  return batch;
}

void Outbox::sent(size_t bytes) {
  std::lock_guard lock(mutex_);
  in_flight_ -= std::min(bytes, in_flight_);
}

void Outbox::set_gone() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (gone_) return;
    gone_ = true;
    pending_.clear();
    if (!ended_) callback = std::exchange(on_gone_, nullptr);
  }
  if (callback) callback();
}

int Outbox::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace omnibus
