#include "omnibus/base/config/option_set.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace omnibus {
namespace {

Status invalid(std::string message) { return absl::InvalidArgumentError(message); }

StatusOr<double> parse_number(std::string_view text, double min, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) {
    return invalid(fmt::format("'{}' is not a number", text));
  }
  if (value < min || value > max) return invalid(fmt::format("{} is not within {} and {}", text, min, max));
  return value;
}

std::string number_text(double value) { return std::isinf(value) ? "inf" : fmt::format("{}", value); }

StatusOr<bool> parse_bool(std::string_view text) {
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  return invalid(fmt::format("'{}' is not true or false", text));
}

}  // namespace

namespace internal {

StatusOr<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool too_big = error == std::errc::result_out_of_range && rest == end;
  if ((error != std::errc() && !too_big) || rest != end) {
    return invalid(fmt::format("'{}' is not a whole number", text));
  }
  if (too_big || value < min || value > max) {
    return invalid(fmt::format("{} is not within {} and {}", text, min, max));
  }
  return value;
}

std::string choice_list(std::span<const std::string> names) {
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

}  // namespace internal

Option& OptionSet::push(Option::Kind kind, std::string name, std::string type, std::string help,
                        Assign assign, Read read) {
  Option option;
  option.kind = kind;
  option.name = std::move(name);
  option.type = std::move(type);
  option.help = std::move(help);
  option.group = group_;
  option.assign = std::move(assign);
  option.read = std::move(read);
  options_.push_back(std::move(option));
  return options_.back();
}

void OptionSet::add(std::string name, std::optional<uint64_t>& field, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "N", std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        const std::string& text = values.back();
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || rest != end) {
          return invalid(fmt::format("'{}' is not a whole number of 64 bits without a sign", text));
        }
        field = value;
        return {};
      },
      [&field] { return field ? fmt::format("{}", *field) : std::string(); });
}

void OptionSet::add(std::string name, double& field, double min, double max, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "X", std::move(help),
      [&field, min, max](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(field, parse_number(values.back(), min, max));
        return {};
      },
      [&field] { return fmt::format("{}", field); })
      .default_text = fmt::format("{}", field);
}

void OptionSet::add(std::string name, std::optional<double>& field, double min, double max,
                    std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "X", std::move(help),
      [&field, min, max](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(field, parse_number(values.back(), min, max));
        return {};
      },
      [&field] { return field ? fmt::format("{}", *field) : std::string(); });
}

void OptionSet::add_or_infinity(std::string name, double& field, double min, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), "X", std::move(help),
      [&field, min](std::span<const std::string> values) -> Status {
        double value = std::numeric_limits<double>::infinity();
        if (values.back() != "inf") {
          const double most = std::numeric_limits<double>::max();
          OMNIBUS_ASSIGN_OR_RETURN(value, parse_number(values.back(), -most, most));
          if (value < min) return invalid(fmt::format("{} is less than {}", values.back(), min));
        }
        field = value;
        return {};
      },
      [&field] { return number_text(field); })
      .default_text = number_text(field);
}

void OptionSet::add(std::string name, bool& field, std::string help) {
  push(
      Option::Kind::kSwitch, std::move(name), "", std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(field, parse_bool(values.back()));
        return {};
      },
      [&field] { return fmt::format("{}", field); })
      .default_text = field ? "on" : "off";
}

void OptionSet::add(std::string name, std::optional<bool>& field, std::string help) {
  push(
      Option::Kind::kSwitch, std::move(name), "", std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        OMNIBUS_ASSIGN_OR_RETURN(field, parse_bool(values.back()));
        return {};
      },
      [&field] { return field ? fmt::format("{}", *field) : std::string(); });
}

void OptionSet::add(std::string name, std::string& field, std::string type, std::string help) {
  push(
      Option::Kind::kValue, std::move(name), std::move(type), std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        field = values.back();
        return {};
      },
      [&field] { return field; })
      .default_text = field;
}

void OptionSet::add_list(std::string name, std::vector<std::string>& field, std::string type,
                         std::string help) {
  push(
      Option::Kind::kList, std::move(name), std::move(type), std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        for (const auto& value : values) {
          if (value.empty()) return invalid("an item is empty");
        }
        field.assign(values.begin(), values.end());
        return {};
      },
      [&field] { return fmt::format("{}", fmt::join(field, "\n")); });
}

void OptionSet::add_positional(std::string placeholder, std::string& field, std::string help) {
  push(
      Option::Kind::kPositional, std::move(placeholder), "", std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        if (values.back().empty()) return invalid("is empty");
        field = values.back();
        return {};
      },
      [&field] { return field; })
      .default_text = field;
}

void OptionSet::add_words(std::string placeholder, std::vector<std::string>& field, std::string help) {
  push(
      Option::Kind::kWords, std::move(placeholder), "", std::move(help),
      [&field](std::span<const std::string> values) -> Status {
        field.assign(values.begin(), values.end());
        return {};
      },
      [&field] { return fmt::format("{}", fmt::join(field, "\n")); });
}

EnvLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::vector<std::string> process_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace omnibus
