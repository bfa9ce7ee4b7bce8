#include "request_reader.h"

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/trace_context.h"

#include "ascii.h"
#include "chunk_decoder.h"
#include "http_error.h"
#include "request_target.h"

namespace omnibus {
namespace {

namespace http = boost::beast::http;

constexpr uint64_t kChunkSlack = 64 * 1024;

Status parse_error(const boost::system::error_code& error) {
  if (error == http::error::header_limit) return http_error(431, "The request header is too large");
  if (error == http::error::bad_version) {
    return with_detail(absl::InvalidArgumentError("Only HTTP/1.0 and HTTP/1.1 are served"),
                       ErrorDetail{.http = 505, .type = "invalid_request_error", .code = {}, .param = {}});
  }
  return http_error(400, "Malformed HTTP request: " + error.message());
}

}  // namespace

std::string request_id_for(std::string_view sent) {
  const bool fit = !sent.empty() && sent.size() <= 128 &&
                   std::all_of(sent.begin(), sent.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  return fit ? std::string(sent) : random_id("req_");
}

struct RequestReader::Impl {
  http::request_parser<http::empty_body> parser;  // of the head; Beast's chunks come with wrong assertions
  ChunkDecoder chunks;
  uint64_t length = 0;  // of the body, unless chunked
  size_t lines = 0;
};

RequestReader::RequestReader() : impl_(std::make_unique<Impl>()) {
  impl_->parser.header_limit(2 * kMaxHeaderBytes);  // ours comes first
  impl_->parser.body_limit(boost::none);
}

RequestReader::~RequestReader() = default;

StatusOr<RequestReader::Progress> RequestReader::feed(std::string& buffer) {
  bool complete = false;
  if (!head_done_) {
    OMNIBUS_RETURN_IF_ERROR(read_head(buffer, complete));
    return complete ? Progress::kHead : Progress::kNeedMore;
  }
  OMNIBUS_RETURN_IF_ERROR(read_body(buffer, complete));
  if (!complete) return Progress::kNeedMore;
  return Progress::kComplete;
}

// Looks at the head line by line: Beast gets it only once it is whole and every line is well-formed.
Status RequestReader::read_head(std::string& buffer, bool& complete) {
  while (impl_->lines == 0 && buffer.starts_with("\r\n")) buffer.erase(0, 2);
  for (;;) {
    const size_t feed = buffer.find('\n', scanned_);
    if (std::min(feed, buffer.size()) > kMaxHeaderBytes) {
      return http_error(431, "The request header is longer than 32 KiB");
    }
    if (impl_->lines == 0 && std::min(feed, buffer.size()) > kMaxTargetBytes + 64) {
      return http_error(414, "The request target is longer than 8 KiB");
    }
    if (feed == std::string::npos) return {};
    if (feed == 0 || buffer[feed - 1] != '\r') {
      return http_error(400, "Malformed HTTP request: a line feed without a carriage return");
    }
    const std::string_view line(buffer.data() + scanned_, feed - 1 - scanned_);
    if (line.empty()) {
      head_done_ = complete = true;
      const Status parsed = parse_head(std::string_view(buffer).substr(0, feed + 1));
      buffer.erase(0, feed + 1);
      return parsed;
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return http_error(400, "Malformed HTTP request: a folded header line");
    }
    if (line.find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos) {
      return http_error(400, "Malformed HTTP request: a control character in the header");
    }
    if (++impl_->lines > kMaxHeaderLines + 1) {
      return http_error(431, "The request header has more than 100 lines");
    }
    scanned_ = feed + 1;
  }
}

Status RequestReader::parse_head(std::string_view head) {
  boost::system::error_code error;
  auto& parser = impl_->parser;
  for (size_t used = 0; used < head.size() && !parser.is_header_done();) {
    used += parser.put(boost::asio::const_buffer(head.data() + used, head.size() - used), error);
    if (error) return parse_error(error);
  }
  if (!parser.is_header_done()) return http_error(400, "Malformed HTTP request");

  const auto& message = parser.get();
  request_.method = std::string(message.method_string());
  request_.http_1_0 = message.version() == 10;
  request_.keep_alive = message.keep_alive();
  for (const auto& field : message) {
    request_.headers.emplace_back(to_lower(field.name_string()), std::string(field.value()));
  }
  request_.request_id = request_id_for(request_.header("x-request-id"));
  if (request_.count_header("traceparent") == 1)
    request_.trace_id = trace_id_of(request_.header("traceparent"));
  OMNIBUS_ASSIGN_OR_RETURN(RequestTarget target, parse_target(message.target()));
  request_.path = std::move(target.path);
  request_.query = std::move(target.query);
  // RFC 9112 section 3.2.2: the target's authority goes before Host.
  request_.host =
      target.authority.empty() ? std::string(request_.header("host")) : std::move(target.authority);
  return check_framing();
}

// Stricter than RFC 9112 allows to be: two readings of one message are how requests are smuggled.
Status RequestReader::check_framing() {
  const size_t hosts = request_.count_header("host");
  if (hosts > 1 || (hosts == 0 && !request_.http_1_0)) return http_error(400, "Exactly one Host is needed");
  if (hosts == 1 && !is_valid_host(request_.header("host"))) return http_error(400, "Malformed Host");
  const std::string_view length = request_.header("content-length");
  if (request_.count_header("content-length") > 1 ||
      !std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return http_error(400, "Exactly one Content-Length in decimal is allowed");
  }
  if (request_.count_header("transfer-encoding") > 0) {
    const bool chunked = impl_->parser.chunked() && request_.count_header("transfer-encoding") == 1 &&
                         to_lower(request_.header("transfer-encoding")) == "chunked";
    if (request_.http_1_0 || request_.count_header("content-length") > 0 || !chunked) {
      return http_error(400, "Transfer-Encoding can only be chunked, in HTTP/1.1, without Content-Length");
    }
  }
  const std::string encoding = to_lower(request_.header("content-encoding"));
  if (!encoding.empty() && encoding != "identity") {
    return http_error(415, "Content-Encoding is not supported: send the body as it is");
  }
  const std::string expect = to_lower(request_.header("expect"));
  if (!expect.empty() && expect != "100-continue")
    return http_error(417, "Only Expect: 100-continue is known");
  return {};
}

Status RequestReader::accept_body(uint64_t limit) {
  body_limit_ = limit;
  impl_->length = impl_->parser.content_length().value_or(0);
  if (impl_->length > limit) {
    return http_error(413, "The request body is larger than " + std::to_string(limit) + " bytes");
  }
  return {};
}

bool RequestReader::has_body() const {
  return impl_->parser.chunked() || impl_->parser.content_length().value_or(0) > 0;
}

uint64_t RequestReader::body_bytes() const { return request_.body.size(); }

bool RequestReader::wants_continue() const {
  return has_body() && !request_.http_1_0 && to_lower(request_.header("expect")) == "100-continue";
}

Status RequestReader::read_body(std::string& buffer, bool& complete) {
  if (!impl_->parser.chunked()) {
    const size_t n = std::min<uint64_t>(buffer.size(), impl_->length - request_.body.size());
    request_.body.append(buffer, 0, n);
    buffer.erase(0, n);
    complete = request_.body.size() == impl_->length;
    return {};
  }
  OMNIBUS_ASSIGN_OR_RETURN(const size_t used, impl_->chunks.feed(buffer, request_.body, body_limit_));
  buffer.erase(0, used);
  body_raw_ += used;
  if (body_raw_ > kMaxChunkOverhead * body_bytes() + kChunkSlack) {
    return http_error(400, "Too much chunk framing");
  }
  complete = impl_->chunks.complete();
  return {};
}

}  // namespace omnibus
