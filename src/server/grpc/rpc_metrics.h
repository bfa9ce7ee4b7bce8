// RpcMetrics: what the gRPC door counts. Every label is of a closed set: a method's name or "none", a code of
// gRPC.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <grpcpp/support/status.h>

#include "omnibus/base/common/metrics.h"

namespace omnibus {

// Any thread.
class RpcMetrics {
 public:
  // The registry outlives it.
  explicit RpcMetrics(MetricsRegistry* registry) : registry_(registry) {}

  // One answered call of a method ("omnibus.v1.Inference/Chat").
  void count(std::string_view method, grpc::StatusCode code);

 private:
  MetricsRegistry* const registry_;
  std::mutex mutex_;
  std::map<std::pair<std::string, grpc::StatusCode>, Counter> requests_;
};

}  // namespace omnibus
