#include "config_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/base/common/small_file.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace omnibus {
namespace {

std::string dashed(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

class Flattener {
 public:
  Flattener(const std::string& path, std::span<const std::string> commands)
      : path_(path), commands_(commands) {}

  Status table(const toml::table& table, const std::string& command, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + dashed(key.str());
      if (const auto* inner = node.as_table()) {
        const std::string words = command.empty() ? name : command + " " + name;
        const bool is_command = prefix.empty() && begins_a_command(words);
        if (!is_command) {
          out.push_back({command, name, {}, static_cast<int>(node.source().begin.line), true});
        }
        OMNIBUS_RETURN_IF_ERROR(is_command ? this->table(*inner, words, "")
                                           : this->table(*inner, command, name + "-"));
        continue;
      }
      FileSetting setting{command, name, {}, static_cast<int>(node.source().begin.line)};
      if (const auto* array = node.as_array()) {
        for (const auto& item : *array) OMNIBUS_RETURN_IF_ERROR(append(item, setting));
        if (array->empty()) return at(setting, "an empty array says nothing: leave the key out");
      } else {
        OMNIBUS_RETURN_IF_ERROR(append(node, setting));
      }
      out.push_back(std::move(setting));
    }
    return {};
  }

  std::vector<FileSetting> out;

 private:
  // Whether the table of these words is a command's, or holds a command's table.
  bool begins_a_command(const std::string& words) const {
    return std::any_of(commands_.begin(), commands_.end(), [&](const std::string& command) {
      return command == words || command.starts_with(words + " ");
    });
  }

  Status append(const toml::node& node, FileSetting& setting) {
    if (const auto* text = node.as_string()) {
      setting.values.push_back(text->get());
    } else if (const auto* integer = node.as_integer()) {
      setting.values.push_back(std::to_string(integer->get()));
    } else if (const auto* number = node.as_floating_point()) {
      setting.values.push_back(fmt::format("{}", number->get()));
    } else if (const auto* flag = node.as_boolean()) {
      setting.values.emplace_back(flag->get() ? "true" : "false");
    } else {
      return at(setting, "only text, numbers, true, false and arrays of them have a meaning here");
    }
    return {};
  }

  Status at(const FileSetting& setting, std::string_view message) {
    return absl::InvalidArgumentError(
        fmt::format("{} line {}: {}: {}", path_, setting.line, setting.key, message));
  }

  const std::string& path_;
  std::span<const std::string> commands_;
};

}  // namespace

StatusOr<std::vector<FileSetting>> parse_config_text(std::string_view text, const std::string& path,
                                                     std::span<const std::string> commands) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return absl::InvalidArgumentError(fmt::format("{} line {}: {}", path, parsed.error().source().begin.line,
                                                  std::string_view(parsed.error().description())));
  }
  Flattener flattener(path, commands);
  OMNIBUS_RETURN_IF_ERROR(flattener.table(parsed.table(), "", ""));
  return std::move(flattener.out);
}

StatusOr<std::vector<FileSetting>> read_config_file(const std::string& path,
                                                    std::span<const std::string> commands) {
  const auto text = read_small_file(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--config: cannot read the file '{}': {}", path, status_message(text.status())));
  }
  // Written by hand nobody leaves it so; a reload would see it while it is being written.
  if (text->empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--config: the file '{}' is empty: half-written? A comment in it makes it deliberate", path));
  }
  return parse_config_text(*text, path, commands);
}

}  // namespace omnibus
