// The dialects that are compiled in, and the choice among them.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "omnibus/base/common/check.h"
#include "omnibus/text/template/dialect.h"

namespace omnibus {
namespace {

struct DialectSource {
  std::string_view name, text;
};

#include "dialect_sources.inc"  // generated from configs/dialects

using DialectPtr = std::shared_ptr<const Dialect>;

std::vector<DialectPtr> parse_all() {
  std::vector<DialectPtr> all;
  for (const DialectSource& source : kDialectSources) {
    auto dialect = parse_dialect(source.name, source.text);
    OMNIBUS_CHECK(dialect.ok(), status_message(dialect.status()));  // a test reads the same files
    all.push_back(std::make_shared<const Dialect>(*std::move(dialect)));
  }
  return all;
}

template <typename Occurs>
size_t longest_mark(const std::vector<std::string>& marks, Occurs occurs) {
  size_t longest = 0;
  for (const std::string& mark : marks)
    if (mark.size() > longest && occurs(mark)) longest = mark.size();
  return longest;
}

// The family with the longest mark that occurs; null if none does.
template <typename Occurs>
DialectPtr best_match(std::vector<std::string> Dialect::*marks, Occurs occurs) {
  DialectPtr best;
  size_t longest = 0;
  for (const DialectPtr& dialect : builtin_dialects()) {
    const size_t length = longest_mark((*dialect).*marks, occurs);
    if (length <= longest) continue;
    longest = length;
    best = dialect;
  }
  return best;
}

DialectPtr detect(std::string_view template_source, const Tokenizer& tokenizer) {
  DialectPtr found = best_match(&Dialect::in_template, [&](const std::string& mark) {
    return template_source.find(mark) != std::string_view::npos;
  });
  if (found) return found;
  return best_match(&Dialect::tokens,
                    [&](const std::string& mark) { return tokenizer.find_token(mark) != kNoToken; });
}

std::string choices() {
  std::vector<std::string> names = {"auto", "none"};
  for (const DialectPtr& dialect : builtin_dialects()) {
    names.push_back(dialect->name);
    names.insert(names.end(), dialect->aliases.begin(), dialect->aliases.end());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::span<const DialectPtr> builtin_dialects() {
  static const std::vector<DialectPtr> all = parse_all();
  return all;
}

StatusOr<DialectPtr> select_dialect(std::string_view choice, std::string_view template_source,
                                    const Tokenizer& tokenizer) {
  if (choice == "none") return DialectPtr();
  if (choice == "auto") return detect(template_source, tokenizer);
  for (const DialectPtr& dialect : builtin_dialects()) {
    const auto& aliases = dialect->aliases;
    if (dialect->name == choice || std::find(aliases.begin(), aliases.end(), choice) != aliases.end())
      return dialect;
  }
  return absl::InvalidArgumentError(fmt::format("no dialect '{}'; there are {}", choice, choices()));
}

}  // namespace omnibus
