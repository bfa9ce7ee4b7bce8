// The end of a server: what was accepted is finished, nothing new is taken.
#pragma once

#include "omnibus/base/config/commands.h"
#include "omnibus/control/engine/async_engine.h"

#include "control.h"
#include "listeners.h"

namespace omnibus {

// Waits --drain-delay, in which requests are still taken, then --drain-timeout at most, and closes the
// listeners. A second SIGTERM or SIGINT ends the process at once, with 128 + its number. How the engine is by
// then: of one that is stalled the destructor would never return.
EngineTrouble drain(Control& control, AsyncEngine& engine, const Listeners& listeners,
                    const HttpConfig& config);

}  // namespace omnibus
