#include "rpc_metrics.h"

#include <array>

namespace omnibus {
namespace {

const char* name_of(grpc::StatusCode code) {
  static constexpr std::array kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

}  // namespace

void RpcMetrics::count(std::string_view method, grpc::StatusCode code) {
  std::lock_guard lock(mutex_);
  const auto [it, fresh] = requests_.try_emplace({std::string(method), code});
  if (fresh) {
    it->second = registry_->counter("omnibus_grpc_requests_total", "gRPC calls answered",
                                    {{"method", it->first.first}, {"code", name_of(code)}});
  }
  it->second.add();
}

}  // namespace omnibus
