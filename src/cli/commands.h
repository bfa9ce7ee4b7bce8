// The commands of the program, one function each. They print for people (results on stdout, errors on stderr)
// and return the exit code.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/config/commands.h"

namespace omnibus {

// `args`: the command line, to be read again by a reload; it outlives the call.
int serve_command(const ServeConfig& config, const std::vector<std::string>& args);
int run_command(const RunConfig& config);
int bench_serve_command(const BenchServeConfig& config);
int pull_command(const PullConfig& config);
int list_command(const ListConfig& config);
int show_command(const ShowConfig& config);
int version_command(const VersionConfig& config);
int help_command(const HelpConfig& config);

inline constexpr int kExitOk = 0, kExitFailure = 1, kExitUsage = 2;

// "omnibus: <message>" on stderr.
int report_failure(const Status& error);

}  // namespace omnibus
