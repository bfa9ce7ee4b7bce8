// The methods of the three services of the gRPC door.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/server/admin/lifecycle.h"
#include "omnibus/server/api/api_core.h"

#include "rpc_method.h"

namespace omnibus {

// omnibus.v1.Inference. `limit`: most bytes of a request, also as JSON.
std::vector<RpcMethod> inference_methods(ApiCore& core, uint64_t limit);

// grpc.reflection, as v1 and v1alpha.
std::vector<RpcMethod> reflection_methods();

// grpc.health.v1: serving while /readyz answers 200. Any thread.
class HealthService {
 public:
  virtual ~HealthService() = default;
  virtual std::vector<RpcMethod> methods() = 0;
  // Tells those who watch when the state is another than before; to be called now and then.
  virtual void poll() = 0;
  // Ends the calls that watch.
  virtual void end_watches() = 0;
};

std::unique_ptr<HealthService> make_health_service(const Lifecycle* lifecycle);

}  // namespace omnibus
