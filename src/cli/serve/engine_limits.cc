#include "engine_limits.h"

#include <algorithm>

#include "omnibus/base/common/log.h"

namespace omnibus {

EngineLimits engine_limits(const ServeConfig& config) {
  EngineLimits limits;
  limits.max_waiting_requests = config.max_waiting_requests;
  limits.max_waiting_tokens = config.max_waiting_tokens;
  limits.fair_sharing = {.enabled = config.fair_sharing != "off", .weights = config.tenant_weights};
  for (const auto& [name, weight] : limits.fair_sharing.weights) {
    const bool known = std::any_of(config.keys.begin(), config.keys.end(),
                                   [&name = name](const ApiKey& key) { return key.name == name; });
    if (!known) log_warning("--fair-sharing: no API key is named '{}'", name);
  }
  return limits;
}

}  // namespace omnibus
