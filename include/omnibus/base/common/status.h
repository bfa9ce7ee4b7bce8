// Status, StatusOr and the one error payload that every door (HTTP, gRPC, CLI) renders.
//
// Every fallible boundary of omnibus returns Status or StatusOr<T>; no exception crosses a module boundary.
// Messages are plain sentences that name the field and the place; they never carry JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace omnibus {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

// What an API needs beside code and message. Empty strings mean "null" in a JSON body.
struct ErrorDetail {
  int http = 0;                // 0: derived from the status code
  std::string type;            // "" : derived from http ("invalid_request_error", "server_error", ...)
  std::string code;            // e.g. "context_length_exceeded", "missing_required_parameter"
  std::string param;           // the field, e.g. "messages[2].content"
  int64_t retry_after_ms = 0;  // > 0: sent as Retry-After
};

// Attaches `detail` to a non-OK status (replacing an earlier one) and returns it.
Status with_detail(Status status, const ErrorDetail& detail);
// The attached detail with every derived field filled in; also for statuses without a payload.
ErrorDetail error_detail(const Status& status);
// The message as std::string (absl's string_view is not std's in Debian's build).
std::string status_message(const Status& status);

// A client's mistake in one field: 400, invalid_request_error.
Status invalid_field(std::string_view param, std::string_view message,
                     std::string_view code = "invalid_value");

}  // namespace omnibus

#define OMNIBUS_CONCAT_INNER(a, b) a##b
#define OMNIBUS_CONCAT(a, b) OMNIBUS_CONCAT_INNER(a, b)
#define OMNIBUS_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                          \
    if (::omnibus::Status omnibus_status = (expr); !omnibus_status.ok()) return omnibus_status; \
  } while (false)
#define OMNIBUS_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = std::move(tmp).value()
#define OMNIBUS_ASSIGN_OR_RETURN(lhs, expr) \
  OMNIBUS_ASSIGN_OR_RETURN_IMPL(OMNIBUS_CONCAT(omnibus_or_, __LINE__), lhs, expr)
