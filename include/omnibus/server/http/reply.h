// Reply: the way back to one client. Thread-safe, never blocks: bytes go to a bounded outbox that the
// connection's own thread empties.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "omnibus/server/http/http_message.h"

namespace omnibus {

// A writer should coalesce its updates while Reply::backlog() is above this.
inline constexpr size_t kOutboxBytes = 256 * 1024;

// All methods from any thread. Either send() once, or begin(), write()..., end(). What comes after that, or
// after the client is gone, is dropped. A reply that is destroyed without having been completed answers 500
// (or, once begun, closes the connection without the final chunk, so that nobody takes it for complete).
class Reply {
 public:
  virtual ~Reply() = default;

  virtual void send(HttpResponse response) = 0;

  // The head of a stream; `head.body` is its first bytes.
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;

  // Bytes accepted and not yet taken by the socket.
  virtual size_t backlog() const = 0;
  // Called once, on a connection thread (or at once on the caller's when it has happened already), when the
  // client went away before the reply was complete: FIN, RST, half-close, or no byte taken for the stall
  // limit. Must not block.
  virtual void on_gone(std::function<void()> callback) = 0;
};

using ReplyPtr = std::shared_ptr<Reply>;

}  // namespace omnibus
