// Dialect files: TOML to Dialect, checked key by key.
#include <algorithm>

#include <fmt/format.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "omnibus/text/template/dialect.h"

namespace omnibus {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;
constexpr size_t kMaxStrings = 64;  // of a list
constexpr size_t kMaxMarkBytes = 256;
constexpr std::string_view kWhitespace = " \t\r\n";

class DialectReader {
 public:
  explicit DialectReader(std::string_view name) : name_(name) {}

  StatusOr<Dialect> read(const toml::table& file) {
    Dialect dialect;
    dialect.name = name_;
    OMNIBUS_RETURN_IF_ERROR(check_keys(file, "", {"aliases", "detect", "reasoning"}));
    OMNIBUS_RETURN_IF_ERROR(strings(file, "", "aliases", dialect.aliases));
    OMNIBUS_ASSIGN_OR_RETURN(const toml::table* detect, table(file, "detect"));
    OMNIBUS_RETURN_IF_ERROR(check_keys(*detect, "detect.", {"template", "tokens"}));
    OMNIBUS_RETURN_IF_ERROR(strings(*detect, "detect.", "template", dialect.in_template));
    OMNIBUS_RETURN_IF_ERROR(strings(*detect, "detect.", "tokens", dialect.tokens));
    OMNIBUS_ASSIGN_OR_RETURN(const toml::table* reasoning, table(file, "reasoning"));
    OMNIBUS_ASSIGN_OR_RETURN(dialect.reasoning, read_reasoning(*reasoning));
    return dialect;
  }

 private:
  Status wrong(const std::string& key, std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("dialect {}: {}: {}", name_, key, what));
  }

  Status check_keys(const toml::table& table, const std::string& prefix,
                    std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        return wrong(prefix + std::string(key.str()), "unknown key");
    }
    return {};
  }

  StatusOr<const toml::table*> table(const toml::table& file, const char* key) const {
    const toml::node* node = file.get(key);
    if (node == nullptr) return wrong(key, "is missing");
    if (!node->is_table()) return wrong(key, "must be a table");
    return node->as_table();
  }

  Status strings(const toml::table& table, const std::string& prefix, const char* key,
                 std::vector<std::string>& out) const {
    const std::string place = prefix + key;
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    if (!node->is_array()) return wrong(place, "must be an array of strings");
    const toml::array& array = *node->as_array();
    if (array.size() > kMaxStrings) return wrong(place, fmt::format("more than {} strings", kMaxStrings));
    for (const toml::node& item : array) {
      const auto* text = item.as_string();
      if (text == nullptr) return wrong(place, "must be an array of strings");
      if (text->get().empty()) return wrong(place, "an empty string");
      if (text->get().size() > kMaxMarkBytes)
        return wrong(place, fmt::format("a string of more than {} bytes", kMaxMarkBytes));
      if (std::find(out.begin(), out.end(), text->get()) != out.end())
        return wrong(place, fmt::format("'{}' stands there twice", text->get()));
      out.push_back(text->get());
    }
    return {};
  }

  Status markers(const toml::table& table, const char* key, const std::string& trim,
                 std::vector<std::string>& out) const {
    const std::string place = std::string("reasoning.") + key;
    OMNIBUS_RETURN_IF_ERROR(strings(table, "reasoning.", key, out));
    for (const std::string& marker : out) {
      if (trim.find(marker.front()) != std::string::npos || trim.find(marker.back()) != std::string::npos)
        return wrong(place, fmt::format("'{}' begins or ends with a character of trim", marker));
    }
    return {};
  }

  // Of markers that are looked for together the first that is complete must be the only one there.
  Status check_nested(const std::string& place, std::span<const std::string> markers) const {
    for (const std::string& outer : markers) {
      for (const std::string& inner : markers) {
        if (&outer == &inner || outer.find(inner) == std::string::npos) continue;
        return wrong(place, fmt::format("'{}' occurs in '{}'", inner, outer));
      }
    }
    return {};
  }

  Status read_trim(const toml::table& table, std::string& out) const {
    const toml::node* node = table.get("trim");
    if (node == nullptr) return {};
    if (!node->is_string()) return wrong("reasoning.trim", "must be a string");
    out = node->as_string()->get();
    if (out.find_first_not_of(kWhitespace) != std::string::npos)
      return wrong("reasoning.trim", "only space, tab and line ends can be trimmed");
    return {};
  }

  StatusOr<std::shared_ptr<const ReasoningFormat>> read_reasoning(const toml::table& table) const {
    auto format = std::make_shared<ReasoningFormat>();
    OMNIBUS_RETURN_IF_ERROR(check_keys(table, "reasoning.", {"open", "close", "drop", "trim", "repeat"}));
    OMNIBUS_RETURN_IF_ERROR(read_trim(table, format->trim));
    OMNIBUS_RETURN_IF_ERROR(markers(table, "open", format->trim, format->open));
    OMNIBUS_RETURN_IF_ERROR(markers(table, "close", format->trim, format->close));
    OMNIBUS_RETURN_IF_ERROR(markers(table, "drop", format->trim, format->drop));
    if (format->open.empty()) return wrong("reasoning.open", "is missing");
    if (format->close.empty()) return wrong("reasoning.close", "is missing");
    std::vector<std::string> beside = format->open;
    beside.insert(beside.end(), format->drop.begin(), format->drop.end());
    OMNIBUS_RETURN_IF_ERROR(check_nested("reasoning.open and reasoning.drop", beside));
    OMNIBUS_RETURN_IF_ERROR(check_nested("reasoning.close", format->close));
    if (const toml::node* node = table.get("repeat"); node != nullptr) {
      if (!node->is_boolean()) return wrong("reasoning.repeat", "must be true or false");
      format->repeat = node->as_boolean()->get();
    }
    return format;
  }

  const std::string name_;
};

}  // namespace

StatusOr<Dialect> parse_dialect(std::string_view name, std::string_view text) {
  if (text.size() > kMaxFileBytes)
    return absl::InvalidArgumentError(fmt::format("dialect {}: longer than {} bytes", name, kMaxFileBytes));
  const toml::parse_result parsed = toml::parse(text, std::string(name));
  if (!parsed) {
    return absl::InvalidArgumentError(fmt::format(
        "dialect {}: line {}: {}", name, parsed.error().source().begin.line, parsed.error().description()));
  }
  return DialectReader(name).read(parsed.table());
}

}  // namespace omnibus
