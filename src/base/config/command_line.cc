#include "command_line.h"

#include <algorithm>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace omnibus {
namespace {

// What CLI11 writes into while it parses.
struct Slots {
  OptionSet* set = nullptr;
  CLI::App* app = nullptr;
  std::vector<std::vector<std::string>> values;
};

std::string flag_names(const Option& option) {
  const std::string flag = "--" + option.name;
  return option.kind == Option::Kind::kSwitch ? flag + ",!--no-" + option.name : flag;
}

// A list given by flag is one value a flag: a greedy list would swallow the MODEL that follows.
void declare(const Option& option, std::vector<std::string>& values, CLI::App& app) {
  const bool positional = option.kind == Option::Kind::kPositional || option.kind == Option::Kind::kWords;
  CLI::Option* o = nullptr;
  if (option.kind == Option::Kind::kSwitch) {
    o = app.add_flag_function(
        flag_names(option), [&values](std::int64_t n) { values = {n > 0 ? "true" : "false"}; }, option.help);
  } else {
    o = app.add_option(positional ? option.name : flag_names(option), values, option.help);
    if (option.kind == Option::Kind::kWords) {
      o->expected(0, 1 << 20);
    } else {
      o->type_size(1)->allow_extra_args(false);
      o->multi_option_policy(option.kind == Option::Kind::kList ? CLI::MultiOptionPolicy::TakeAll
                                                                : CLI::MultiOptionPolicy::TakeLast);
    }
    if (option.kind == Option::Kind::kPositional) o->expected(1);
    o->type_name(option.type);
  }
  if (!option.default_text.empty()) o->default_str(option.default_text);
  if (!option.group.empty()) o->group(option.group);
}

// `--max_model_len` means `--max-model-len`; only names that exist are touched.
std::vector<std::string> with_dashes(std::span<const std::string> args, std::span<OptionSet* const> sets) {
  std::set<std::string> names = {"config"};
  for (const OptionSet* set : sets) {
    for (const auto& option : set->options()) {
      names.insert(option.name);
      if (option.kind == Option::Kind::kSwitch) names.insert("no-" + option.name);
    }
  }
  std::vector<std::string> out(args.begin(), args.end());
  for (auto& arg : out) {
    if (!arg.starts_with("--")) continue;
    std::string name = arg.substr(2, arg.find('=') - 2);
    const size_t length = name.size();
    std::replace(name.begin(), name.end(), '_', '-');
    if (names.contains(name)) arg.replace(2, length, name);
  }
  return out;
}

// CLI11's own layout writes "N=8000 ..."; ours "N (8000)", and switches without their {false}.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(38); }

  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    if (positional) return option->get_name(true);
    std::string names;
    for (const auto& name : option->get_snames()) names += "-" + name + ", ";
    const auto& longs = option->get_lnames();
    return names + (longs.size() == 2 ? "--[no-]" : "--") + longs.front();
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out;
    if (!option->get_type_name().empty()) out += " " + option->get_type_name();
    if (!option->get_default_str().empty()) out += " (" + option->get_default_str() + ")";
    return out;
  }

  std::string make_option_desc(const CLI::Option* option) const override { return option->get_description(); }
};

bool is_help(const std::string& arg) { return arg == "-h" || arg == "--help"; }

std::string footer(const OptionSet& set) {
  std::string variable = "OMNIBUS_<NAME>",
              place = "keys at top level or under a table named like the command";
  if (set.nested()) {
    std::string words = set.command(), table = set.command();
    std::replace(table.begin(), table.end(), ' ', '.');
    std::replace(words.begin(), words.end(), ' ', '_');
    for (char& c : words) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    variable = fmt::format("OMNIBUS_{}_<NAME>", words);
    place = fmt::format("keys of the table [{}]", table);
  }
  return fmt::format(
      "\nEach option can also be set as {} in the environment, or in a TOML file named by --config or\n"
      "OMNIBUS_CONFIG ({}).\n"
      "The flag wins over the environment, the environment over the file.",
      variable, place);
}

void build(Slots& slots, std::string& config_file, CLI::App& app) {
  slots.app = &app;
  app.footer(footer(*slots.set));
  app.set_help_flag("-h,--help", "Print this and exit");
  const auto options = slots.set->options();
  slots.values.resize(options.size());
  for (size_t i = 0; i < options.size(); ++i) declare(options[i], slots.values[i], app);
  app.add_option("--config", config_file, "TOML file with any of these options")->type_name("FILE");
}

// CLI11 only says that a subcommand is required.
Status check_command(const ProgramInfo& program, std::span<OptionSet* const> sets,
                     std::span<const std::string> args) {
  std::vector<std::string> names;
  for (const OptionSet* set : sets) names.push_back(set->command());
  const std::string list =
      fmt::format("the commands are {} ({} --help)", fmt::join(names, ", "), program.name);
  if (args.empty()) return absl::InvalidArgumentError("no command given: " + list);
  if (is_help(args[0]) || args[0] == "help") return {};
  std::string words;
  for (const std::string& arg : args) {
    words += (words.empty() ? "" : " ") + arg;
    if (std::find(names.begin(), names.end(), words) != names.end()) return {};
    const bool begins = std::any_of(names.begin(), names.end(),
                                    [&](const std::string& name) { return name.starts_with(words + " "); });
    if (!begins) return absl::InvalidArgumentError(fmt::format("unknown command '{}': {}", words, list));
    if (args.size() > 1 && is_help(args[1])) return {};
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is not a whole command: {}", words, list));
}

// The app of a command; those of two words stand under one app for the first.
CLI::App& app_of(const OptionSet& set, CLI::App& root) {
  const std::string& command = set.command();
  const size_t space = command.find(' ');
  if (space == std::string::npos) return *root.add_subcommand(command, set.summary());
  const std::string first = command.substr(0, space);
  const auto all = root.get_subcommands([](const CLI::App*) { return true; });
  const auto found =
      std::find_if(all.begin(), all.end(), [&](auto* app) { return app->get_name() == first; });
  CLI::App* group = found == all.end() ? nullptr : *found;
  if (group == nullptr) {
    group = root.add_subcommand(first, "");
    group->set_help_flag("-h,--help", "Print this and exit");
    group->require_subcommand(1);
  }
  group->description(group->get_description() + (group->get_description().empty() ? "" : "; ") +
                     set.summary());
  return *group->add_subcommand(command.substr(space + 1), set.summary());
}

// CLI11 ends a subcommand at `--`; what follows are words of ours, whatever they look like.
Status place_tail(std::span<const std::string> tail, CommandLine& line) {
  for (const auto& option : line.chosen->options()) {
    if (tail.empty()) return {};
    if (option.kind == Option::Kind::kPositional && !line.given.contains(option.name)) {
      line.given[option.name] = {tail[0]};
      tail = tail.subspan(1);
    } else if (option.kind == Option::Kind::kWords) {
      auto& words = line.given[option.name];
      words.insert(words.end(), tail.begin(), tail.end());
      tail = {};
    }
  }
  if (tail.empty()) return {};
  return absl::InvalidArgumentError(fmt::format("The following argument was not expected: {}", tail[0]));
}

}  // namespace

StatusOr<CommandLine> read_command_line(const ProgramInfo& program, std::span<OptionSet* const> sets,
                                        std::span<const std::string> args) {
  CLI::App app(program.summary, program.name);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this and exit");
  std::string config_file;
  std::vector<Slots> slots(sets.size());
  for (size_t i = 0; i < sets.size(); ++i) {
    slots[i].set = sets[i];
    CLI::App& target = program.subcommands ? app_of(*sets[i], app) : app;
    build(slots[i], config_file, target);
  }
  if (program.subcommands) OMNIBUS_RETURN_IF_ERROR(check_command(program, sets, args));

  CommandLine out;
  const auto dashes = std::find(args.begin(), args.end(), "--") - args.begin();
  const auto tail = args.subspan(std::min(args.size(), static_cast<size_t>(dashes) + 1));
  try {
    std::vector<std::string> reversed = with_dashes(args.first(static_cast<size_t>(dashes)), sets);
    // `help serve` is `serve --help`.
    if (program.subcommands && !reversed.empty() && reversed[0] == "help") {
      reversed.erase(reversed.begin());
      reversed.emplace_back("--help");
    }
    std::reverse(reversed.begin(), reversed.end());  // CLI11 takes its arguments from the back
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    out.help = app.help();
    return out;
  } catch (const CLI::ParseError& e) {
    const auto in = std::find_if(slots.begin(), slots.end(), [&](const Slots& s) { return s.app->parsed(); });
    const bool named = program.subcommands && in != slots.end();
    return absl::InvalidArgumentError(fmt::format("{} ({}{} --help lists what there is)", e.what(),
                                                  program.name, named ? " " + in->set->command() : ""));
  }
  for (auto& slot : slots) {
    if (program.subcommands && !slot.app->parsed()) continue;
    out.chosen = slot.set;
    const auto options = slot.set->options();
    for (size_t i = 0; i < options.size(); ++i) {
      if (!slot.values[i].empty()) out.given[options[i].name] = std::move(slot.values[i]);
    }
  }
  if (!config_file.empty()) out.config_file = config_file;
  OMNIBUS_RETURN_IF_ERROR(place_tail(tail, out));
  return out;
}

}  // namespace omnibus
