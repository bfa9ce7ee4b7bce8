// RequestReader: bytes of a connection in, one HTTP/1.1 request out. Beast parses; what Beast lets through
// and we do not (folded lines, bare line feeds, odd framing) is refused in front of it. No I/O: any split of
// the bytes into feeds gives the same result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

inline constexpr size_t kMaxHeaderBytes = 32 * 1024;
inline constexpr size_t kMaxHeaderLines = 100;
inline constexpr size_t kMaxTargetBytes = 8 * 1024;
// Chunk framing may cost this many times the body it frames.
inline constexpr uint64_t kMaxChunkOverhead = 8;

// The id of a request: the client's where it can be echoed as it is, else one of ours.
std::string request_id_for(std::string_view sent);

// For one request; one thread at a time.
class RequestReader {
 public:
  RequestReader();
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  enum class Progress { kNeedMore, kHead, kComplete };

  // Takes what it can from the front of `buffer` and erases it. kHead comes once, when the head is whole;
  // then call accept_body(), then feed() again, with an empty buffer too. What remains in `buffer` after
  // kComplete belongs to the next request. Errors carry their HTTP status; the connection is to be closed
  // after them.
  StatusOr<Progress> feed(std::string& buffer);

  // With the head: the body as announced; 413 when Content-Length is above `limit`.
  Status accept_body(uint64_t limit);
  bool has_body() const;
  // Bytes of the body that have been taken in so far.
  uint64_t body_bytes() const;
  // The client waits for 100 Continue before it sends its body.
  bool wants_continue() const;

  // After kHead: all but the body; after kComplete: with it.
  HttpRequest& request() { return request_; }

 private:
  struct Impl;
  Status read_head(std::string& buffer, bool& complete);
  Status parse_head(std::string_view head);
  Status check_framing();
  Status read_body(std::string& buffer, bool& complete);

  std::unique_ptr<Impl> impl_;
  HttpRequest request_;
  size_t scanned_ = 0;  // of the head: bytes known to be well-formed lines
  bool head_done_ = false;
  uint64_t body_limit_ = 0;
  uint64_t body_raw_ = 0;  // bytes fed after the head
};

}  // namespace omnibus
