#include "exchange.h"

#include <array>

#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

namespace omnibus::client {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr size_t kMostPending = 1 << 20;  // of HTTP itself: what is neither head nor body

// A body that goes straight to a function. The names are those that Beast asks of a Body.
struct SinkBody {
  struct value_type {
    std::function<void(std::string_view)> take;
  };
  class reader {
   public:
    template <bool kRequest, typename Fields>
    reader(http::header<kRequest, Fields>& /*head*/, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>& /*length*/, error_code& error) { error = {}; }
    template <typename Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t size = 0;
      for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers); ++at) {
        const asio::const_buffer part = *at;
        body_.take({static_cast<const char*>(part.data()), part.size()});
        size += part.size();
      }
      return size;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

class AnswerParser {
 public:
  explicit AnswerParser(AnswerSink& sink) : sink_(sink) {
    parser_.eager(true);
    parser_.body_limit(boost::none);
    parser_.get().body().take = [this](std::string_view bytes) {
      tell_head();
      sink_.on_body(bytes, arrived_);
    };
  }

  // Bytes in, or the end of the stream (no bytes).
  Status push(std::string_view bytes, MonotonicNs arrived) {
    arrived_ = arrived;
    error_code error;
    if (bytes.empty()) {
      if (!parser_.got_some())
        return absl::UnavailableError("the server closed the connection without an answer");
      parser_.put_eof(error);
      if (error) return absl::UnavailableError("the server closed the connection within its answer");
      tell_head();
      return {};
    }
    pending_ += bytes;
    while (!pending_.empty() && !parser_.is_done()) {
      const size_t used = parser_.put(asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == http::error::need_more) break;
      if (error) return absl::InternalError(fmt::format("the answer is not HTTP: {}", error.message()));
      if (used == 0) break;
    }
    if (pending_.size() > kMostPending) return absl::InternalError("the answer is not HTTP: an endless line");
    if (parser_.is_header_done()) tell_head();
    return {};
  }

  bool done() const { return parser_.is_done(); }
  bool keep_alive() const { return parser_.is_done() && parser_.keep_alive() && pending_.empty(); }

 private:
  void tell_head() {
    if (std::exchange(told_, true)) return;
    const auto& head = parser_.get();
    const auto type = head[http::field::content_type];
    sink_.on_head(static_cast<int>(head.result_int()), {type.data(), type.size()});
  }

  AnswerSink& sink_;
  http::response_parser<SinkBody> parser_;
  std::string pending_;
  MonotonicNs arrived_ = 0;
  bool told_ = false;
};

}  // namespace

std::string request_bytes(const Endpoint& endpoint, std::string_view method, std::string_view path,
                          std::string_view body) {
  std::string out = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n", method, endpoint.prefix,
                                path, endpoint.host_header());
  for (const auto& [name, value] : endpoint.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!body.empty()) {
    out += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  out += "\r\n";
  out += body;
  return out;
}

asio::awaitable<ExchangeResult> exchange(Transport& transport, std::string_view request, AnswerSink sink,
                                         const Clock& clock) {
  ExchangeResult result;
  // A server that refuses may answer and close before it has read all: the answer is read even so.
  const Status sent = co_await transport.write(request);
  AnswerParser parser(sink);
  std::array<char, 16384> buffer;
  while (!parser.done()) {
    const auto count = co_await transport.read_some(buffer);
    const MonotonicNs arrived = clock.now_ns();
    if (!count.ok()) {
      result.status = sent.ok() ? count.status() : sent;
      co_return result;
    }
    result.any_byte = result.any_byte || *count > 0;
    result.status = parser.push({buffer.data(), *count}, arrived);
    if (result.status.ok() && sink.too_long()) result.status = absl::InternalError("the answer is too long");
    if (!result.status.ok()) co_return result;
    if (*count == 0) break;
  }
  result.whole = true;
  result.keep_alive = parser.keep_alive();
  co_return result;
}

}  // namespace omnibus::client
