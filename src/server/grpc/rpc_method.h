// RpcMethod: one method of the gRPC door. Handlers are those of HTTP routes: the body of their request is one
// protobuf message, and what they send and write are frames (rpc_frame.h).
#pragma once

#include <string>
#include <utility>

#include "omnibus/server/http/route_table.h"

namespace omnibus {

struct RpcMethod {
  // There is no default scope: a method without one does not compile.
  RpcMethod(std::string path_in, Scope scope_in, RouteHandler run, bool many = false)
      : path(std::move(path_in)), scope(scope_in), handler(std::move(run)), many_requests(many) {}

  std::string path;  // "/omnibus.v1.Inference/Generate"
  Scope scope;
  RouteHandler handler;
  bool many_requests;  // each message of the call is a request of its own, answered by send()
};

}  // namespace omnibus
