#include "omnibus/base/common/status.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <absl/strings/cord.h>

namespace omnibus {
namespace {

constexpr char kDetailUrl[] = "omnibus.dev/ErrorDetail";

// Each part as its length, ':' and its bytes: `param` may hold any byte that a client sent as a key.
void append_part(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
}

std::string_view take_part(std::string_view& text) {
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);  // the ':' too
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(part.size());
  return part;
}

template <typename Number>
void take_number(std::string_view& text, Number& number) {
  const std::string_view part = take_part(text);
  std::from_chars(part.data(), part.data() + part.size(), number);
}

std::string encode(const ErrorDetail& d) {
  std::string out;
  append_part(out, std::to_string(d.http));
  append_part(out, d.type);
  append_part(out, d.code);
  append_part(out, d.param);
  append_part(out, std::to_string(d.retry_after_ms));
  return out;
}

// `text` is what encode() wrote.
ErrorDetail decode(std::string_view text) {
  ErrorDetail d;
  take_number(text, d.http);
  d.type = take_part(text);
  d.code = take_part(text);
  d.param = take_part(text);
  take_number(text, d.retry_after_ms);
  return d;
}

int http_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kFailedPrecondition:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAlreadyExists:
      return 409;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string_view type_of(int http) {
  switch (http) {
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    default:
      return http >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

Status with_detail(Status status, const ErrorDetail& detail) {
  if (!status.ok()) status.SetPayload(kDetailUrl, absl::Cord(encode(detail)));
  return status;
}

ErrorDetail error_detail(const Status& status) {
  ErrorDetail d;
  if (auto payload = status.GetPayload(kDetailUrl)) d = decode(std::string(*payload));
  if (d.http == 0) d.http = http_of(status.code());
  if (d.type.empty()) d.type = type_of(d.http);
  return d;
}

std::string status_message(const Status& status) { return std::string(status.message()); }

Status invalid_field(std::string_view param, std::string_view message, std::string_view code) {
  ErrorDetail d;
  d.http = 400;
  d.code = code;
  d.param = param;
  return with_detail(absl::InvalidArgumentError(absl::string_view(message.data(), message.size())), d);
}

}  // namespace omnibus
