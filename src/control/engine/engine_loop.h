// The engine's thread: it drives an EngineCore from an inbox until a StopCommand comes.
#pragma once

#include "engine_command.h"
#include "engine_core.h"

namespace omnibus {

enum class EngineWait { kStop, kStep, kCommand };

// What the engine does until it has to wait, and what for: nothing more, the oldest step in flight, or the
// inbox. Waits for nothing itself; the simulator drives the core by it, too.
EngineWait run_until_wait(EngineCore& core, EngineInbox& inbox);

// No exception leaves it: one fails the engine, and from then on every request is answered with an error.
void run_engine(EngineCore& core, EngineInbox& inbox);

}  // namespace omnibus
