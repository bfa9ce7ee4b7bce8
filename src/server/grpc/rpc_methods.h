// The methods of the three services of the gRPC door.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/server/api/api_core.h"

#include "rpc_method.h"

namespace omnibus {

// omnibus.v1.Inference. `limit`: most bytes of a request, also as JSON.
std::vector<RpcMethod> inference_methods(ApiCore& core, uint64_t limit);

// grpc.reflection, as v1 and v1alpha.
std::vector<RpcMethod> reflection_methods();

// grpc.health.v1: serving while the engine is ready and nothing drains. Any thread.
class HealthService {
 public:
  virtual ~HealthService() = default;
  virtual std::vector<RpcMethod> methods() = 0;
  // Tells those who watch when the state is another than before; to be called now and then.
  virtual void poll() = 0;
  // From now on: not serving.
  virtual void begin_drain() = 0;
  // Ends the calls that watch.
  virtual void end_watches() = 0;
};

std::unique_ptr<HealthService> make_health_service(ContextPtr context);

}  // namespace omnibus
