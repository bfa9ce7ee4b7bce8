// Serving a model until a signal ends it: `omnibus serve`, and the replay server of the tests.
#pragma once

#include <functional>

#include "omnibus/base/config/commands.h"
#include "omnibus/cli/served_model.h"

namespace omnibus {

// What a program that serves has of its own.
struct ServeProgram {
  // The model, prepared and not loaded. Called once, while the listeners answer probes already.
  std::function<StatusOr<ServedModel>()> open_model;
  // Reads command line, environment and files again, for a reload. Errors are INVALID_ARGUMENT.
  std::function<StatusOr<ServeConfig>()> read_config;
};

// A SIGHUP waits from now on until serve() takes it, instead of ending the process. As early in the process
// as can be, before the configuration is read and before any other thread exists.
void block_hangup();

// Listens, loads the model, prints the start-up table on stdout, and serves. SIGTERM or SIGINT drains: no new
// requests, what was accepted goes on for --drain-timeout; a second signal ends at once. SIGHUP reads the
// configuration again. Must be called before any other thread exists. Returns the exit code; errors have been
// printed.
int serve(const ServeConfig& config, const ServeProgram& program);

}  // namespace omnibus
