#include "omnibus/cli/run_program.h"

#include <cstdio>
#include <variant>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/log_flush.h"
#include "omnibus/cli/serve.h"

#include "commands.h"
#include "version.h"

namespace omnibus {
namespace {

struct Dispatch {
  const std::vector<std::string>& args;

  int operator()(const ServeConfig& config) const { return serve_command(config, args); }
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
  if (log_is_json()) {
    log_error("{}", status_message(error));
  } else {
    flush_log();
    fmt::print(stderr, "omnibus: {}\n", status_message(error));
  }
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

namespace {

// Before anything is written, so that --log-format json holds for every line.
void init_log_for(const ParsedCommand& command) {
  const LogConfig* log = nullptr;
  if (const auto* serve = std::get_if<ServeConfig>(&command)) log = &serve->log;
  if (const auto* run = std::get_if<RunConfig>(&command)) log = &run->log;
  if (log != nullptr) init_log(log->level, log->format);
}

}  // namespace

int run_program(const std::vector<std::string>& args) {
  // Before the files that the command line names are read: a reload asked for meanwhile waits.
  if (!args.empty() && args.front() == "serve") block_hangup();
  const auto command = parse_command_line(args);
  if (!command.ok()) {
    report_failure(command.status());
    return kExitUsage;
  }
  init_log_for(*command);
  for (const std::string& name : unknown_variables(process_variables())) {
    const std::string warning = fmt::format("{} in the environment is no option of any command", name);
    if (log_is_json()) {
      log_warning("{}", warning);
    } else {
      fmt::print(stderr, "omnibus: warning: {}\n", warning);
    }
  }
  return std::visit(Dispatch{args}, *command);
}

}  // namespace omnibus
