#include "omnibus/base/common/status.h"

#include <charconv>
#include <vector>

#include <absl/strings/cord.h>

namespace omnibus {
namespace {

constexpr char kDetailUrl[] = "omnibus.dev/ErrorDetail";
constexpr char kSeparator = '\x1f';  // never part of a field name, type or code

std::string encode(const ErrorDetail& d) {
  std::string out = std::to_string(d.http);
  for (const std::string* s : {&d.type, &d.code, &d.param}) (out += kSeparator) += *s;
  (out += kSeparator) += std::to_string(d.retry_after_ms);
  return out;
}

ErrorDetail decode(std::string_view text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == kSeparator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  ErrorDetail d;
  if (parts.size() != 5) return d;
  std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), d.http);
  d.type = parts[1];
  d.code = parts[2];
  d.param = parts[3];
  std::from_chars(parts[4].data(), parts[4].data() + parts[4].size(), d.retry_after_ms);
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
