#include "chunk_decoder.h"

#include <algorithm>

#include "ascii.h"
#include "http_error.h"

namespace omnibus {
namespace {

constexpr size_t kMaxSizeDigits = 15;

Status malformed(const char* what) { return http_error(400, std::string("Malformed chunked body: ") + what); }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7F && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  });
}

}  // namespace

StatusOr<bool> ChunkDecoder::take_line(std::string_view bytes, size_t& at, std::string_view& line) const {
  const size_t feed = bytes.find('\n', at);
  const size_t end = std::min(feed, bytes.size());
  if (end - at > kMaxChunkLineBytes) return malformed("a line is too long");
  if (feed == std::string_view::npos) return false;
  if (feed == at || bytes[feed - 1] != '\r') return malformed("a line feed without a carriage return");
  line = bytes.substr(at, feed - 1 - at);
  at = feed + 1;
  if (std::any_of(line.begin(), line.end(), is_control)) return malformed("a control character");
  return true;
}

// chunk-size [ chunk-ext ]; extensions mean nothing here.
Status ChunkDecoder::take_size(std::string_view line, uint64_t room) {
  uint64_t size = 0;
  size_t digits = 0;
  for (; digits < line.size() && hex_digit(line[digits]) >= 0; ++digits) {
    if (digits == kMaxSizeDigits) return malformed("a chunk size is too long");
    size = size * 16 + static_cast<uint64_t>(hex_digit(line[digits]));
  }
  if (digits == 0 || (digits < line.size() && line[digits] != ';')) return malformed("a bad chunk size");
  if (size > room) return http_error(413, "The request body is too large");
  left_ = size;
  state_ = size > 0 ? State::kData : State::kTrailer;
  return {};
}

Status ChunkDecoder::take_trailer(std::string_view line) {
  if (line.empty()) {
    state_ = State::kComplete;
    return {};
  }
  trailer_bytes_ += line.size() + 2;
  if (trailer_bytes_ > kMaxChunkLineBytes) return http_error(431, "The trailers are too large");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return malformed("a bad trailer");
  return {};
}

StatusOr<size_t> ChunkDecoder::feed(std::string_view bytes, std::string& body, uint64_t limit) {
  size_t at = 0;
  while (state_ != State::kComplete) {
    if (state_ == State::kData) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size() - at));
      body.append(bytes, at, n);
      at += n;
      left_ -= n;
      if (left_ > 0) return at;
      state_ = State::kDataEnd;
    }
    if (state_ == State::kDataEnd) {
      if (bytes.size() - at < 2) {
        // What is there has to fit, or an error would depend on how the bytes are cut.
        if (at < bytes.size() && bytes[at] != '\r') return malformed("data longer than its chunk");
        return at;
      }
      if (bytes.substr(at, 2) != "\r\n") return malformed("data longer than its chunk");
      at += 2;
      state_ = State::kSize;
    }
    std::string_view line;
    OMNIBUS_ASSIGN_OR_RETURN(const bool whole, take_line(bytes, at, line));
    if (!whole) return at;
    OMNIBUS_RETURN_IF_ERROR(state_ == State::kSize ? take_size(line, limit - body.size())
                                                   : take_trailer(line));
  }
  return at;
}

}  // namespace omnibus
