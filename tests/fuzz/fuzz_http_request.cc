// The HTTP/1 parser: the same bytes in one piece, byte by byte and cut at one place must give the same
// requests, or an error in all three; and a request that is taken must have been framed as an independent
// reading of RFC 9112 says. Input: one byte that says where to cut, then the connection's bytes.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/http/request_reader.h"

namespace {

using omnibus::HttpRequest;
using omnibus::RequestReader;

constexpr uint64_t kBodyLimit = 4096;
constexpr size_t kMaxRequests = 8;

struct Outcome {
  std::vector<std::string> requests;  // each as text that names all that was understood
  std::vector<HttpRequest> parsed;
  bool failed = false;
  size_t consumed = 0;  // bytes up to the end of the last whole request
};

std::string describe(const HttpRequest& request) {
  std::string out = request.method + ' ' + request.path + " ? " + request.query + " @ " + request.host +
                    (request.http_1_0 ? " 1.0" : " 1.1") + (request.keep_alive ? " keep" : " close");
  for (const auto& [name, value] : request.headers) out += '\n' + name + '=' + value;
  return out + "\n\n" + request.body;
}

// A connection as the session reads it: what is left in the buffer belongs to the next request.
class Connection {
 public:
  void take(std::string_view bytes) {
    buffer_ += bytes;
    taken_ += bytes.size();
    while (!outcome_.failed && outcome_.requests.size() < kMaxRequests && step()) {
    }
  }
  Outcome outcome() const { return outcome_; }

 private:
  bool step() {
    if (!reader_) reader_.emplace();
    const auto progress = reader_->feed(buffer_);
    if (!progress.ok()) {
      const int status = omnibus::error_detail(progress.status()).http;
      if (status < 400 || status > 599 || status == 500) __builtin_trap();
      outcome_.failed = true;
      return false;
    }
    if (*progress == RequestReader::Progress::kHead) {
      outcome_.failed = !reader_->accept_body(kBodyLimit).ok();
      return true;
    }
    if (*progress == RequestReader::Progress::kNeedMore) return false;
    outcome_.requests.push_back(describe(reader_->request()));
    outcome_.parsed.push_back(reader_->request());
    outcome_.consumed = taken_ - buffer_.size();
    reader_.reset();
    return !buffer_.empty();
  }

  std::string buffer_;
  size_t taken_ = 0;
  std::optional<RequestReader> reader_;
  Outcome outcome_;
};

Outcome read(std::string_view bytes, size_t piece, size_t cut) {
  Connection connection;
  if (cut > 0 && cut < bytes.size()) {
    connection.take(bytes.substr(0, cut));
    bytes.remove_prefix(cut);
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    connection.take(bytes.substr(0, piece));
  }
  return connection.outcome();
}

// The body of a chunked message (RFC 9112 section 7.1) from its first chunk; `end` is where it ends.
std::optional<std::string> dechunk(std::string_view bytes, size_t& end) {
  std::string body;
  size_t at = 0;
  for (;;) {
    size_t size = 0, digits = 0;
    for (; at < bytes.size() &&
           std::string_view("0123456789abcdefABCDEF").find(bytes[at]) != std::string_view::npos;
         ++at, ++digits) {
      const char c = bytes[at];
      size = size * 16 + static_cast<size_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      if (size > kBodyLimit) return std::nullopt;
    }
    const size_t line_end = bytes.find("\r\n", at);
    if (digits == 0 || line_end == std::string_view::npos) return std::nullopt;
    at = line_end + 2;
    if (size == 0) break;
    if (bytes.size() - at < size + 2 || bytes.substr(at + size, 2) != "\r\n") return std::nullopt;
    body += bytes.substr(at, size);
    at += size + 2;
  }
  for (;;) {  // trailers
    const size_t line_end = bytes.find("\r\n", at);
    if (line_end == std::string_view::npos) return std::nullopt;
    const bool last = line_end == at;
    at = line_end + 2;
    if (last) break;
  }
  end = at;
  return body;
}

// Reads the connection again, by framing alone, and compares.
void check_framing(std::string_view bytes, const Outcome& outcome) {
  size_t start = 0;
  for (const HttpRequest& request : outcome.parsed) {
    while (bytes.substr(start).starts_with("\r\n")) start += 2;
    const size_t head_end = bytes.find("\r\n\r\n", start);
    if (head_end == std::string_view::npos) __builtin_trap();
    const std::string_view rest = bytes.substr(head_end + 4);
    const size_t lengths = request.count_header("content-length");
    const size_t codings = request.count_header("transfer-encoding");
    if (lengths + codings > 1 || request.count_header("host") > 1) __builtin_trap();
    size_t body_end = 0;
    if (codings == 1) {
      const auto body = dechunk(rest, body_end);
      if (!body || *body != request.body) __builtin_trap();
    } else {
      body_end = lengths == 0 ? 0 : std::stoul(std::string(request.header("content-length")));
      if (body_end > rest.size() || rest.substr(0, body_end) != request.body) __builtin_trap();
    }
    start = head_end + 4 + body_end;
  }
  if (start != outcome.consumed) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = bytes.empty() ? 0 : (data[0] * bytes.size()) / 256;
  const Outcome whole = read(bytes, bytes.size() + 1, 0);
  const Outcome single = read(bytes, 1, 0);
  const Outcome halves = read(bytes, bytes.size() + 1, cut);
  for (const Outcome* other : {&single, &halves}) {
    if (other->requests != whole.requests || other->failed != whole.failed ||
        other->consumed != whole.consumed)
      __builtin_trap();
  }
  check_framing(bytes, whole);
  return 0;
}
