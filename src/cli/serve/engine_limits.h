// The limits of the engine that may change while it runs, from the configuration.
#pragma once

#include "omnibus/base/common/status.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/control/engine/async_engine.h"

namespace omnibus {

// Errors name the flag. A share of a name that no key has is no error, and is logged: a reload may bring the
// key.
StatusOr<EngineLimits> engine_limits(const ServeConfig& config);

}  // namespace omnibus
