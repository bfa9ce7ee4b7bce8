#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>

#include "omnibus/base/config/option_set.h"

#include "command_line.h"
#include "config_file.h"

namespace omnibus {
namespace {

// The name in files and, upper-cased, in the environment.
std::string key_of(const Option& option) {
  std::string key = option.name;
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

std::string env_name(const OptionSet& set, const Option& option) {
  std::string name = "OMNIBUS_";
  for (const char c : (set.nested() ? set.command() + " " : "") + option.name) {
    const bool gap = c == '-' || c == ' ';
    name += gap ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// Whether what stands in the file under `command` ("": at top level) is said to `set`.
bool concerns(const std::string& command, const OptionSet& set) {
  return command.empty() ? !set.nested() : command == set.command();
}

std::vector<std::string> env_values(const Option& option, const std::string& text) {
  if (option.kind != Option::Kind::kList) return {text};
  std::vector<std::string> items(1);
  for (char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

bool has_key(const OptionSet& set, const std::string& key) {
  return std::any_of(set.options().begin(), set.options().end(), [&](const Option& option) {
    return option.kind != Option::Kind::kWords && key_of(option) == key;
  });
}

// Whether a table of this name can hold a key.
bool has_table(const OptionSet& set, const std::string& name) {
  return std::any_of(set.options().begin(), set.options().end(), [&](const Option& option) {
    return option.kind != Option::Kind::kWords && key_of(option).starts_with(name + "-");
  });
}

// A command as the name of its table.
std::string dotted(std::string command) {
  std::replace(command.begin(), command.end(), ' ', '.');
  return command;
}

// A key that no command knows is a mistake; one of another command is not ours to judge.
Status check_known(const FileSetting& setting, std::span<OptionSet* const> sets, const std::string& path) {
  const bool known = std::any_of(sets.begin(), sets.end(), [&](const OptionSet* set) {
    if (!concerns(setting.command, *set)) return false;
    return setting.is_table ? has_table(*set, setting.key) : has_key(*set, setting.key);
  });
  if (known) return {};
  const std::string name =
      fmt::format("{}{}{}", dotted(setting.command), setting.command.empty() ? "" : ".", setting.key);
  const std::string what = setting.is_table ? fmt::format("table [{}]", name) : fmt::format("key '{}'", name);
  return absl::InvalidArgumentError(fmt::format("{} line {}: unknown {}", path, setting.line, what));
}

// Settings of the file that concern `set`; its own table wins over the top level.
StatusOr<std::map<std::string, FileSetting>> file_settings(const std::string& path, const OptionSet& set,
                                                           std::span<OptionSet* const> sets) {
  std::vector<std::string> commands;
  for (const OptionSet* s : sets) commands.push_back(s->command());
  OMNIBUS_ASSIGN_OR_RETURN(const auto settings, read_config_file(path, commands));
  std::map<std::string, FileSetting> out;
  for (const auto& setting : settings) {
    OMNIBUS_RETURN_IF_ERROR(check_known(setting, sets, path));
    if (setting.is_table || !concerns(setting.command, set)) continue;
    const auto [it, added] = out.try_emplace(setting.key, setting);
    if (added) continue;
    if (setting.command == it->second.command) {
      return absl::InvalidArgumentError(
          fmt::format("{} line {}: '{}' is set twice", path, setting.line, setting.key));
    }
    if (!setting.command.empty()) it->second = setting;
  }
  return out;
}

Status prefixed(const Status& status, const std::string& place) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}: {}", place, status_message(status)));
}

std::string flag_text(const Option& option) {
  const bool positional = option.kind == Option::Kind::kPositional || option.kind == Option::Kind::kWords;
  return positional ? option.name : "--" + option.name;
}

}  // namespace

std::vector<std::string> unknown_variables(std::span<OptionSet* const> sets,
                                           std::span<const std::string> names) {
  // The last ones are the build's and the tests'.
  std::set<std::string> known = {"OMNIBUS_CONFIG", "OMNIBUS_HOME", "OMNIBUS_BUILD_DIR", "OMNIBUS_PYTHON",
                                 "OMNIBUS_TEMPLATES_DIR"};
  for (const OptionSet* set : sets) {
    for (const Option& option : set->options()) {
      if (option.kind != Option::Kind::kWords) known.insert(env_name(*set, option));
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const bool ours = name.starts_with("OMNIBUS_") && !name.starts_with("OMNIBUS_TEST");
    if (ours && !known.contains(name)) unknown.push_back(name);
  }
  return unknown;
}

StatusOr<ParseResult> parse_options(const ProgramInfo& program, std::span<OptionSet* const> sets,
                                    std::span<const std::string> args, const EnvLookup& env) {
  OMNIBUS_ASSIGN_OR_RETURN(auto line, read_command_line(program, sets, args));
  ParseResult result;
  result.help = std::move(line.help);
  if (!result.help.empty()) return result;
  result.chosen = line.chosen;

  std::string path = line.config_file.value_or("");
  if (path.empty()) path = env("OMNIBUS_CONFIG").value_or("");
  std::map<std::string, FileSetting> from_file;
  if (!path.empty()) {
    OMNIBUS_ASSIGN_OR_RETURN(from_file, file_settings(path, *line.chosen, sets));
  }

  for (const auto& option : line.chosen->options()) {
    if (const auto given = line.given.find(option.name); given != line.given.end()) {
      OMNIBUS_RETURN_IF_ERROR(prefixed(option.assign(given->second), flag_text(option)));
      continue;
    }
    if (option.kind == Option::Kind::kWords) continue;
    const std::string variable = env_name(*line.chosen, option);
    if (const auto text = env(variable); text && !text->empty()) {
      OMNIBUS_RETURN_IF_ERROR(prefixed(option.assign(env_values(option, *text)), variable));
      continue;
    }
    if (const auto set = from_file.find(key_of(option)); set != from_file.end()) {
      const auto& setting = set->second;
      const std::string place = fmt::format("{} line {}: {}", path, setting.line, setting.key);
      if (setting.values.size() > 1 && option.kind != Option::Kind::kList) {
        return absl::InvalidArgumentError(place + ": takes one value, not an array");
      }
      OMNIBUS_RETURN_IF_ERROR(prefixed(option.assign(setting.values), place));
    }
  }
  return result;
}

}  // namespace omnibus
