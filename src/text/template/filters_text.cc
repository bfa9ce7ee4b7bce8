// Filters that make text.
#include <iterator>

#include "filters.h"
#include "format.h"
#include "interpreter.h"
#include "json_value.h"
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

TextPtr text_of(Interpreter& in, const Value& value) { return to_text(value, in.heap()); }

template <CaseMap kHow>
Value cased(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("case filter", args, {});
  return map_case(*text_of(in, input), kHow, in.budget());
}

bool starts_word(std::string_view text, size_t at) {
  const CodePoint before = decode_before(text, at);
  return is_space(before.value) ||
         std::string_view("-({[<").find(static_cast<char>(before.value)) != std::string_view::npos;
}

// A capital at the beginning and after spaces and opening brackets, not after every non-letter as
// str.title().
Value title(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("title", args, {});
  const TextPtr text = text_of(in, input);
  in.budget().bulk(text->size());
  const std::string_view view = text->view();
  TextBuilder out(&in.budget());
  for (size_t at = 0; at < view.size();) {
    const CodePoint c = decode_at(view, at);
    std::string mapped;
    const bool ascii_before = at > 0 && static_cast<signed char>(view[at - 1]) >= 0;
    const bool word =
        at == 0 || ((ascii_before || is_space(decode_before(view, at).value)) && starts_word(view, at));
    if (c.value < 0)
      mapped.append(view.substr(at, c.bytes));
    else if (word)
      append_upper(mapped, c.value);
    else
      append_lower(mapped, view, at);
    out.append(mapped, text->trusted_at(at));
    if ((at & 63) == 0) in.budget().step();
    at += c.bytes;
  }
  return out.build(text->markup());
}

Value trim(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("trim", args, {"chars"});
  TextPtr chars;
  if (bound.has(0) && !bound.at(0).is_none()) chars = bound.text(0);
  return strip_text(*text_of(in, input), chars.get(), true, true, in.budget());
}

Value plain(Interpreter& in, const TextPtr& text) {
  if (!text->markup()) return text;
  TextBuilder out(&in.budget());
  out.append(*text);
  return out.build();
}

Value replace(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("replace", args, {"old", "new", "count"}, 2);
  Integer count = -1;
  if (bound.has(2) && !bound.at(2).is_none()) count = bound.integer(2, -1);
  return plain(in, replace_text(*text_of(in, input), *text_of(in, bound.at(0)), *text_of(in, bound.at(1)),
                                count, in.budget()));
}

Value string(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("string", args, {});
  return text_of(in, input);
}

Value safe(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("safe", args, {});
  TextBuilder out(&in.budget());
  out.append(*text_of(in, input));
  return out.build(true);
}

Value escape(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("escape", args, {});
  return escape_html(text_of(in, input), in.budget());
}

Value force_escape(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("forceescape", args, {});
  return escape_html(plain(in, text_of(in, input)).text(), in.budget());
}

Value indent(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("indent", args, {"width", "first", "blank"});
  Budget& budget = in.budget();
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_text()) fail(std::string("indent: the input must be str, not ") + type_name(input));
  TextBuilder pad(&budget);
  if (bound.has(0) && bound.at(0).is_text()) {
    pad.append(*bound.at(0).text());
  } else {
    const Integer width = bound.integer(0, 4);
    pad.append_repeated(
        " ", static_cast<size_t>(width < 0 ? 0 : (width > (1 << 30) ? Integer{1 << 30} : width)), true);
  }
  const TextPtr indention = pad.build();
  // Jinja2 adds a newline first, so that a last empty line counts.
  TextBuilder extended(&budget);
  extended.append(*input.text());
  extended.append("\n", true);
  const std::vector<Value> lines = split_lines(*extended.build(), budget);
  const bool blank = bound.flag(2, false);
  TextBuilder out(&budget);
  if (bound.flag(1, false)) out.append(*indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.append("\n", true);
      if (blank || !lines[i].view().empty()) out.append(*indention);
    }
    out.append(*lines[i].text());
  }
  return out.build(input.text()->markup());
}

Value format(Interpreter& in, const Value& input, const CallArgs& args) {
  if (!args.positional.empty() && !args.keyword.empty())
    fail("can't handle positional and keyword arguments at the same time");
  if (args.keyword.empty())
    return format_percent(text_of(in, input), in.heap().list(args.positional, true), in.heap());
  Dict* named = in.heap().make<Dict>();
  for (const auto& [name, value] : args.keyword)
    named->set(make_text(name, true, &in.budget()), value, in.budget());
  return format_percent(text_of(in, input), named, in.heap());
}

Value center(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("center", args, {"width"});
  CallArgs width;
  width.positional.emplace_back(bound.integer(0, 80));
  return find_text_method("center").body(in, text_of(in, input), width);
}

Value wordcount(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("wordcount", args, {});
  const TextPtr text = text_of(in, input);
  in.budget().bulk(text->size());
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text->size();) {
    const CodePoint c = decode_at(text->view(), at);
    const bool word = is_word(c.value);
    if (word && !inside) ++words;
    inside = word;
    at += c.bytes;
  }
  return words;
}

// One level of json.dumps' indent: spaces for a number, the text itself otherwise.
TextPtr json_indent(Interpreter& in, const BoundArgs& bound, size_t i) {
  if (bound.at(i).is_text()) return bound.at(i).text();
  const Integer width = bound.integer(i, 0);
  if (width > 1000) fail("tojson: indent is too large");
  return make_text(std::string(static_cast<size_t>(width < 0 ? 0 : width), ' '), false, &in.budget());
}

Value tojson(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  style.pretty = bound.has(1) && !bound.at(1).is_none();
  if (style.pretty) style.indent = json_indent(in, bound, 1);
  style.item_separator = make_text(style.pretty ? "," : ", ", false, &in.budget());
  style.key_separator = make_text(": ", false, &in.budget());
  if (bound.has(2) && !bound.at(2).is_none()) {
    const std::vector<Value> parts = in.to_items(bound.at(2));
    if (parts.size() != 2 || !parts[0].is_text() || !parts[1].is_text())
      fail("tojson: separators must be two strings");
    style.item_separator = parts[0].text();
    style.key_separator = parts[1].text();
  }
  return value_to_json(input, style, in.heap());
}

Value from_json(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("from_json", args, {});
  if (!input.is_text()) fail(std::string("the JSON object must be str, not ") + type_name(input));
  return value_from_json_text(*input.text(), in.heap());
}

constexpr NamedFilter kFilters[] = {
    {"upper", cased<CaseMap::kUpper>},
    {"lower", cased<CaseMap::kLower>},
    {"capitalize", cased<CaseMap::kCapitalize>},
    {"title", title},
    {"trim", trim},
    {"replace", replace},
    {"string", string},
    {"safe", safe},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"indent", indent},
    {"format", format},
    {"center", center},
    {"wordcount", wordcount},
    {"tojson", tojson},
    {"from_json", from_json},
};

}  // namespace

FilterTable text_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace omnibus::jinja
