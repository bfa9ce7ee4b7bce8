// ChunkDecoder: a body in chunks (RFC 9112 section 7.1), in whatever pieces it comes. Stricter than it has to
// be: two readings of one message are how requests are smuggled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"

namespace omnibus {

// A chunk's size line, or all trailers, may be this long.
inline constexpr size_t kMaxChunkLineBytes = 16 * 1024;

// For one body; one thread at a time.
class ChunkDecoder {
 public:
  // Takes what it can from the front of `bytes`, appends data to `body` and returns how much it took.
  // Trailers are checked and dropped. 413 as soon as a chunk would make `body` longer than `limit`.
  StatusOr<size_t> feed(std::string_view bytes, std::string& body, uint64_t limit);
  bool complete() const { return state_ == State::kComplete; }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kComplete };
  // One line out of `bytes` from `at` on, without its end; false: it is not whole yet.
  StatusOr<bool> take_line(std::string_view bytes, size_t& at, std::string_view& line) const;
  Status take_size(std::string_view line, uint64_t room);
  Status take_trailer(std::string_view line);

  State state_ = State::kSize;
  uint64_t left_ = 0;  // of the chunk's data
  size_t trailer_bytes_ = 0;
};

}  // namespace omnibus
