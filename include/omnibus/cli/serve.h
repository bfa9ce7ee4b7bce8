// Serving a model until a signal ends it: `omnibus serve`, and the replay server of the tests.
#pragma once

#include "omnibus/base/config/commands.h"
#include "omnibus/cli/served_model.h"

namespace omnibus {

// Starts engine and listener, prints the start-up table on stdout, and serves. SIGTERM or SIGINT drains: no
// new requests, what was accepted goes on for --drain-timeout; a second signal ends at once. Must be called
// before any other thread exists. Returns the exit code; errors have been printed.
int serve_model(const ServeConfig& config, ServedModel model);

}  // namespace omnibus
