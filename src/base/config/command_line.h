// argv as CLI11 reads it: which set was chosen and what was written for each of its options. Values are not
// checked here; that is Option::assign's work, the same for all sources.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "omnibus/base/config/option_set.h"

namespace omnibus {

struct CommandLine {
  OptionSet* chosen = nullptr;
  std::string help;                                       // non-empty: help was asked for
  std::map<std::string, std::vector<std::string>> given;  // option name -> its values, in order
  std::optional<std::string> config_file;                 // --config
};

// The only function that knows CLI11.
StatusOr<CommandLine> read_command_line(const ProgramInfo& program, std::span<OptionSet* const> sets,
                                        std::span<const std::string> args);

}  // namespace omnibus
