// Errors as gRPC words them: a google.rpc.Status with code and message, and omnibus.v1.ErrorDetail as its
// detail.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// The code of gRPC for an error that is `http` over HTTP.
int rpc_code_of(int http);

// RESOURCE_EXHAUSTED and UNAVAILABLE, and when to try again.
Status rpc_overload(const char* message);
Status rpc_unavailable(const char* message);

// Serialised google.rpc.Status. A long message is cut, so that clients take the trailers that carry it.
std::string rpc_status_bytes(const Status& error);

// What a Reply of gRPC sends: the status of HTTP, and rpc_status_bytes() as the body.
HttpResponse render_rpc_error(const Status& error, std::string_view path);

// 200 with one message.
HttpResponse rpc_message(std::string_view serialized);

}  // namespace omnibus
