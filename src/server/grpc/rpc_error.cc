#include "rpc_error.h"

#include <algorithm>

#include <google/rpc/status.pb.h>
#include <omnibus/v1/inference.pb.h>

#include "omnibus/text/tokenizer/incremental_detokenizer.h"

#include "rpc_frame.h"

namespace omnibus {
namespace {

// The message travels twice, as text that may be escaped to three times its size, and in the detail; clients
// take 8 KiB of trailers.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxParamBytes = 256;
constexpr int64_t kRetryAfterMs = 1000;

// Valid UTF-8, as protobuf demands, cut at a character.
std::string fit(std::string text, size_t limit) {
  if (text.size() > limit) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
    text.resize(limit);
    text += "...";
  }
  std::string valid;
  append_valid_utf8(text, valid, /*flush=*/true);
  return valid;
}

}  // namespace

int rpc_code_of(int http) {
  // Names of the codes: https://grpc.io/docs/guides/status-codes
  switch (http) {
    case 401:
      return 16;  // UNAUTHENTICATED
    case 403:
      return 7;  // PERMISSION_DENIED
    case 404:
      return 5;  // NOT_FOUND
    case 409:
      return 6;  // ALREADY_EXISTS
    case 429:
      return 8;  // RESOURCE_EXHAUSTED
    case 499:
      return 1;  // CANCELLED
    case 405:
    case 501:
      return 12;  // UNIMPLEMENTED
    case 503:
      return 14;  // UNAVAILABLE
    case 408:
    case 504:
      return 4;  // DEADLINE_EXCEEDED
    default:
      return http >= 500 ? 13 : 3;  // INTERNAL, INVALID_ARGUMENT
  }
}

Status rpc_overload(const char* message) {
  ErrorDetail detail;
  detail.http = 429;
  detail.code = "rate_limit_exceeded";
  detail.retry_after_ms = kRetryAfterMs;
  return with_detail(absl::ResourceExhaustedError(message), detail);
}

Status rpc_unavailable(const char* message) {
  ErrorDetail detail;
  detail.retry_after_ms = kRetryAfterMs;
  return with_detail(absl::UnavailableError(message), detail);
}

std::string rpc_status_bytes(const Status& error) {
  const ErrorDetail detail = error_detail(error);
  v1::ErrorDetail message;
  message.set_http_status(detail.http);
  message.set_type(detail.type);
  message.set_code(detail.code);
  message.set_param(fit(detail.param, kMaxParamBytes));
  message.set_retry_after_ms(detail.retry_after_ms);
  google::rpc::Status status;
  status.set_code(rpc_code_of(detail.http));
  status.set_message(fit(status_message(error), kMaxMessageBytes));
  status.add_details()->PackFrom(message);
  return status.SerializeAsString();
}

HttpResponse render_rpc_error(const Status& error, std::string_view /*path*/) {
  const ErrorDetail detail = error_detail(error);
  HttpResponse response;
  response.status = detail.http;
  response.content_type.clear();
  response.body = rpc_status_bytes(error);
  // How gRPC's own clients learn when to try again.
  if (detail.retry_after_ms > 0) {
    response.headers.emplace_back("grpc-retry-pushback-ms", std::to_string(detail.retry_after_ms));
  }
  return response;
}

HttpResponse rpc_message(std::string_view serialized) {
  HttpResponse response;
  response.content_type.clear();
  append_frame(response.body, RpcFrameKind::kMessage, serialized);
  return response;
}

}  // namespace omnibus
