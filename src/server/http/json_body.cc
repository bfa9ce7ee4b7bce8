#include "omnibus/server/http/json_body.h"

#include <vector>

#include <fmt/format.h>

namespace omnibus {
namespace {

using DomParser = nlohmann::detail::json_sax_dom_parser<Json>;

// Each inserted key is compared with those before it; this bounds the comparisons of one body.
constexpr size_t kMaxKeyComparisons = size_t{64} << 20;
// No field has a longer name: what a client sends as one is neither kept nor quoted.
constexpr size_t kMaxFieldName = 64;

Status not_json(const std::string& why) { return absl::InvalidArgumentError("Body is not JSON: " + why); }

class Guard : public DomParser {
 public:
  explicit Guard(Json& target) : DomParser(target, /*allow_exceptions_=*/false) {}

  bool start_object(std::size_t size) { return enter() && DomParser::start_object(size); }
  bool start_array(std::size_t size) { return enter() && DomParser::start_array(size); }
  bool end_object() {
    open_.pop_back();
    return DomParser::end_object();
  }
  bool end_array() {
    open_.pop_back();
    return DomParser::end_array();
  }
  bool key(std::string& name) {
    Level& level = open_.back();
    comparisons_ += level.keys;
    level.key = name.size() <= kMaxFieldName ? name : "";
    if (++level.keys > kMaxJsonKeys) {
      return fail(fmt::format("an object has more than {} keys", kMaxJsonKeys));
    }
    if (comparisons_ > kMaxKeyComparisons) return fail("there are too many objects with many keys");
    return DomParser::key(name);
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& /*token*/, const Exception& error) {
    if (error.id == 406) {
      const std::string where = field();
      problem_ = invalid_field(where, fmt::format("{} has a number that no double holds, at byte {}",
                                                  where.empty() ? "Body" : where, position));
      return false;
    }
    // Not the library's text: it quotes the body at length.
    const bool utf8 = std::string_view(error.what()).find("ill-formed UTF-8") != std::string_view::npos;
    return fail(fmt::format("{} at byte {}", utf8 ? "invalid UTF-8" : "syntax error", position));
  }

  const Status& problem() const { return problem_; }

 private:
  struct Level {  // of an open array or object
    size_t keys = 0;
    std::string key;  // the last one; empty when it is no field's name
  };

  bool enter() {
    open_.emplace_back();
    return open_.size() <= kMaxJsonDepth || fail(fmt::format("nested more than {} deep", kMaxJsonDepth));
  }
  bool fail(const std::string& message) {
    problem_ = not_json(message);
    return false;
  }
  // Where the parser is, as far as keys tell: the item of an array has none.
  std::string field() const {
    std::string path;
    for (const Level& level : open_) {
      if (level.key.empty()) break;
      path += (path.empty() ? "" : ".") + level.key;
    }
    return path;
  }

  std::vector<Level> open_;
  size_t comparisons_ = 0;
  Status problem_;
};

}  // namespace

StatusOr<Json> parse_json(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return not_json("the body is empty");
  if (text.starts_with("\xef\xbb\xbf")) return not_json("byte order mark");
  // The lexer takes NUL for the end of its input, and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    return not_json(fmt::format("syntax error at byte {}", nul + 1));
  Json root;
  Guard guard(root);
  if (!Json::sax_parse(text, &guard)) return guard.problem();
  return root;
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string quote_value(const Json& value, size_t limit) {
  // A long value is not written out only to be cut: containers are named by kind and size.
  if (value.is_object() && value.size() > 16) return fmt::format("an object of {} keys", value.size());
  if (value.is_array() && value.size() > 16) return fmt::format("an array of {} items", value.size());
  std::string text = dump_json(value);
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return text.substr(0, limit) + "...";
}

}  // namespace omnibus
