// The engine's thread: it drives an EngineCore from an inbox until a StopCommand comes.
#pragma once

#include "engine_command.h"
#include "engine_core.h"

namespace omnibus {

// No exception leaves it: one fails the engine, and from then on every request is answered with an error.
void run_engine(EngineCore& core, EngineInbox& inbox);

}  // namespace omnibus
