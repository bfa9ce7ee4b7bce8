// One declaration of an option gives its command-line flag, its environment variable OMNIBUS_<NAME>, its key
// in a TOML file, its line in --help and its validation. Precedence: flag > environment > file > default.
//
// An option is declared with the field it fills; the field's value at that moment is the default shown by
// --help. Names are written with dashes ("max-model-len"); underscores are accepted everywhere.
//
// A command of two words ("bench serve") keeps its options to itself: its variables carry its words
// (OMNIBUS_BENCH_SERVE_<NAME>), and in a file only its own table [bench.serve] speaks to it. So a `model`
// that was meant for `serve` cannot reach it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "omnibus/base/common/status.h"

namespace omnibus {

struct Option {
  enum class Kind {
    kValue,       // --name VALUE; given twice, the last one counts
    kList,        // --name VALUE, repeatable; in the environment separated by commas
    kSwitch,      // --name / --no-name
    kPositional,  // one word without a dash; `name` in lower case is its environment and file name
    kWords,       // every word that is left; command line only
  };
  Kind kind = Kind::kValue;
  std::string name;
  std::string type;          // for --help: "N", "TEXT", "{fast,f32}"
  std::string help;          // one sentence
  std::string default_text;  // "" when there is none to show
  std::string group;
  // Checks the values and writes the field, or says what is wrong with them (the caller adds where they
  // stood).
  std::function<Status(std::span<const std::string>)> assign;
  // The field's present value, for comparing: equal texts, equal values.
  std::function<std::string()> read;
};

class OptionSet {
 public:
  // `command` is the subcommand's name ("serve", or two words: "bench serve"), or the program's when there
  // are no subcommands.
  OptionSet(std::string command, std::string summary)
      : command_(std::move(command)), summary_(std::move(summary)) {}

  // Options declared from here on stand under this heading in --help.
  void begin_group(std::string group) { group_ = std::move(group); }

  // Integers in decimal, within [min, max]. With an optional field there is no default to show.
  template <std::integral T>
  void add(std::string name, T& field, int64_t min, int64_t max, std::string help);
  template <std::integral T>
  void add(std::string name, std::optional<T>& field, int64_t min, int64_t max, std::string help);
  // Any 64-bit pattern, for seeds.
  void add(std::string name, std::optional<uint64_t>& field, std::string help);
  void add(std::string name, double& field, double min, double max, std::string help);
  void add(std::string name, std::optional<double>& field, double min, double max, std::string help);
  // As a number of at least `min`, or "inf".
  void add_or_infinity(std::string name, double& field, double min, std::string help);
  void add(std::string name, bool& field, std::string help);
  void add(std::string name, std::optional<bool>& field, std::string help);
  void add(std::string name, std::string& field, std::string type, std::string help);
  void add_list(std::string name, std::vector<std::string>& field, std::string type, std::string help);
  // Exactly one of the named choices.
  template <typename E>
  void add_choice(std::string name, E& field, std::vector<std::pair<std::string, E>> choices,
                  std::string help);
  // A word without a dash. `placeholder` is its name in --help, e.g. "MODEL".
  void add_positional(std::string placeholder, std::string& field, std::string help);
  void add_words(std::string placeholder, std::vector<std::string>& field, std::string help);

  const std::string& command() const { return command_; }
  // Whether the command has two words.
  bool nested() const { return command_.find(' ') != std::string::npos; }
  const std::string& summary() const { return summary_; }
  std::span<const Option> options() const { return options_; }

 private:
  using Assign = std::function<Status(std::span<const std::string>)>;
  using Read = std::function<std::string()>;
  Option& push(Option::Kind kind, std::string name, std::string type, std::string help, Assign assign,
               Read read);

  std::string command_, summary_, group_;
  std::vector<Option> options_;
};

// Looks an environment variable up; nullopt when unset. Empty text counts as unset to the parser.
using EnvLookup = std::function<std::optional<std::string>(const std::string&)>;
EnvLookup process_environment();
// Names of all variables of this process.
std::vector<std::string> process_variables();

// What a command line asked for.
struct ParseResult {
  OptionSet* chosen = nullptr;  // whose fields have been filled; nullptr when only help was asked for
  std::string help;             // non-empty: print this on stdout and exit with 0
};

// Parses `args` (without the program's name) and fills the fields of the chosen set. With `subcommands`, the
// first word chooses the set; without, `sets` holds exactly one. Errors are INVALID_ARGUMENT, name the flag,
// variable or file line, and are meant for stderr and exit code 2. A --config FILE (or OMNIBUS_CONFIG) is
// TOML: keys at top level go to every command of one word that has them, a table named like a command only to
// that command.
struct ProgramInfo {
  std::string name;     // "omnibus"
  std::string summary;  // first line of --help
  bool subcommands = true;
};
StatusOr<ParseResult> parse_options(const ProgramInfo& program, std::span<OptionSet* const> sets,
                                    std::span<const std::string> args, const EnvLookup& env);

// Those of `names` that begin with OMNIBUS_ and mean nothing: no option of `sets`, not OMNIBUS_CONFIG or
// OMNIBUS_HOME, and nothing of the build or the tests (OMNIBUS_TEST..., OMNIBUS_BUILD_DIR, ...).
std::vector<std::string> unknown_variables(std::span<OptionSet* const> sets,
                                           std::span<const std::string> names);

namespace internal {
StatusOr<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);
std::string choice_list(std::span<const std::string> names);
}  // namespace internal

template <std::integral T>
void OptionSet::add(std::string name, T& field, int64_t min, int64_t max, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "N", std::move(help),
      [&field, min, max](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(const int64_t v, internal::parse_integer(values.back(), min, max));
        field = static_cast<T>(v);
        return {};
      },
      [&field] { return std::to_string(field); })
      .default_text = std::to_string(field);
}

template <std::integral T>
void OptionSet::add(std::string name, std::optional<T>& field, int64_t min, int64_t max, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "N", std::move(help),
      [&field, min, max](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(const int64_t v, internal::parse_integer(values.back(), min, max));
        field = static_cast<T>(v);
        return {};
      },
      [&field] { return field ? std::to_string(*field) : std::string(); });
}

template <typename E>
void OptionSet::add_choice(std::string name, E& field, std::vector<std::pair<std::string, E>> choices,
                           std::string help) {
  std::vector<std::string> names;
  std::string current;
  for (const auto& [text, value] : choices) {
    names.push_back(text);
    if (value == field) current = text;
  }
  std::string type = internal::choice_list(names);
  Read read = [&field] { return std::to_string(static_cast<int>(field)); };
  push(
      Option::Kind::kValue, std::move(name), type, std::move(help),
      [&field, choices = std::move(choices), type](std::span<const std::string> values) -> Status {
        for (const auto& [text, value] : choices) {
          if (text != values.back()) continue;
          field = value;
          return {};
        }
        return absl::InvalidArgumentError("'" + values.back() + "' is not one of " + type);
      },
      std::move(read))
      .default_text = std::move(current);
}

}  // namespace omnibus
