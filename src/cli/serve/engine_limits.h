// The limits of the engine that may change while it runs, from the configuration.
#pragma once

#include "omnibus/base/config/commands.h"
#include "omnibus/control/engine/async_engine.h"

namespace omnibus {

// A share of a name that no key has is logged: a reload may bring the key.
EngineLimits engine_limits(const ServeConfig& config);

}  // namespace omnibus
