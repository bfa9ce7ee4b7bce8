#include "omnibus/cli/run_program.h"

#include <cstdio>
#include <variant>

#include <fmt/format.h>

#include "commands.h"
#include "version.h"

namespace omnibus {
namespace {

struct Dispatch {
  int operator()(const ServeConfig& config) const { return serve_command(config); }
  int operator()(const RunConfig& config) const { return run_command(config); }
  int operator()(const BenchServeConfig& config) const { return bench_serve_command(config); }
  int operator()(const PullConfig& config) const { return pull_command(config); }
  int operator()(const ListConfig& config) const { return list_command(config); }
  int operator()(const ShowConfig& config) const { return show_command(config); }
  int operator()(const VersionConfig& config) const { return version_command(config); }
  int operator()(const HelpConfig& config) const { return help_command(config); }
};

}  // namespace

int report_failure(const Status& error) {
  fmt::print(stderr, "omnibus: {}\n", status_message(error));
  return kExitFailure;
}

int version_command(const VersionConfig& /*config*/) {
  fmt::print("omnibus {}\n", version());
  return kExitOk;
}

int help_command(const HelpConfig& config) {
  fmt::print("{}", config.text);
  return kExitOk;
}

int run_program(const std::vector<std::string>& args) {
  const auto command = parse_command_line(args);
  if (!command.ok()) {
    report_failure(command.status());
    return kExitUsage;
  }
  for (const std::string& name : unknown_variables(process_variables())) {
    fmt::print(stderr, "omnibus: warning: {} in the environment is no option of any command\n", name);
  }
  return std::visit(Dispatch{}, *command);
}

}  // namespace omnibus
