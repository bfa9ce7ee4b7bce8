// Outbox: the bytes of one answer between the threads that make them and the connection that sends them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "omnibus/server/http/reply.h"

namespace omnibus {

// What the head of an answer needs to know of its request.
struct AnswerContext {
  std::string request_id;
  std::string headers;     // more lines for the head, each with its end
  bool head_only = false;  // HEAD
  bool http_1_0 = false;   // no chunks: the end of the connection ends the body
  bool keep_alive = true;  // as asked for
  // True from some moment on: every head made after it says Connection: close. May be null.
  std::shared_ptr<const std::atomic<bool>> draining = nullptr;
};

// Methods from any thread.
class Outbox {
 public:
  // `wake` tells the connection that there is something to take; called without the lock held.
  Outbox(AnswerContext context, std::function<void()> wake);

  void send(HttpResponse response);
  void begin(HttpResponse head);
  void write(std::string bytes);
  void end();
  // The maker is gone without having completed the answer.
  void abandon();
  size_t backlog() const;
  void on_gone(std::function<void()> callback);

  // The connection's side.
  struct Batch {
    std::string bytes;   // ready for the wire
    bool done = false;   // nothing follows
    bool close = false;  // with done: the connection must end
  };
  Batch take();
  // Bytes of a batch left for the kernel.
  void sent(size_t bytes);
  // The client went away: later writes are dropped, the callback runs (unless the answer was complete).
  void set_gone();
  int status() const;

 private:
  enum class Framing { kLength, kChunked, kUntilClosed };
  // Throws where there is no memory; then nothing has begun, and another answer can.
  void start(HttpResponse response, Framing framing);
  void start_no_answer() noexcept;
  std::string head(const HttpResponse& response, Framing framing) const;

  const AnswerContext context_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::string head_;      // not yet taken
  std::string pending_;   // body bytes not yet taken
  size_t in_flight_ = 0;  // taken, not yet sent
  std::function<void()> on_gone_;
  int status_ = 0;
  bool begun_ = false, chunked_ = false, ended_ = false, closed_ = false, close_ = false, gone_ = false;
};

}  // namespace omnibus
