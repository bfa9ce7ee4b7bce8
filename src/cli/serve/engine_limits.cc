#include "engine_limits.h"

#include <algorithm>

#include "omnibus/base/common/log.h"
#include "omnibus/cli/served_model.h"

namespace omnibus {

StatusOr<EngineLimits> engine_limits(const ServeConfig& config) {
  EngineLimits limits;
  limits.max_waiting_requests = config.max_waiting_requests;
  limits.max_waiting_tokens = config.max_waiting_tokens;
  OMNIBUS_ASSIGN_OR_RETURN(limits.fair_sharing, parse_fair_sharing(config.fair_sharing));
  for (const auto& [name, weight] : limits.fair_sharing.weights) {
    const bool known = std::any_of(config.keys.begin(), config.keys.end(),
                                   [&name = name](const ApiKey& key) { return key.name == name; });
    if (!known) log_warning("--fair-sharing: no API key is named '{}'", name);
  }
  return limits;
}

}  // namespace omnibus
