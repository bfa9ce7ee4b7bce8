// str.format(): replacement fields, conversions, the format mini-language.
#include <cctype>

#include "format.h"
#include "interpreter.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

// "{:{width}}" may nest once, as in Python.
constexpr int kMaxFieldDepth = 2;

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

size_t parse_size(std::string_view spec, size_t& at) {
  size_t n = 0;
  while (at < spec.size() && std::isdigit(static_cast<unsigned char>(spec[at])) != 0) {
    n = n * 10 + static_cast<size_t>(spec[at++] - '0');
    if (n > 1'000'000'000) fail("Too many decimal digits in format string");
  }
  return n;
}

FormatSpec parse_spec(std::string_view spec) {
  FormatSpec out;
  size_t at = 0;
  if (!spec.empty()) {
    const size_t first = decode_at(spec, 0).bytes;
    if (spec.size() > first && is_align(spec[first])) {
      out.fill = spec.substr(0, first);
      out.align = spec[first];
      at = first + 1;
    } else if (is_align(spec[0])) {
      out.align = spec[0];
      at = 1;
    }
  }
  const auto take = [&](char c) { return at < spec.size() && spec[at] == c ? (++at, true) : false; };
  if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' ')) out.sign = spec[at++];
  if (take('#')) out.alternate = true;
  if (take('0')) out.zero = true;
  out.width = parse_size(spec, at);
  if (take(','))
    out.grouping = ',';
  else if (take('_'))
    out.grouping = '_';
  if (take('.')) {
    if (at >= spec.size() || std::isdigit(static_cast<unsigned char>(spec[at])) == 0)
      fail("Format specifier missing precision");
    out.precision = static_cast<int>(parse_size(spec, at));
  }
  if (at < spec.size()) out.type = spec[at++];
  if (at != spec.size()) fail("Invalid format specifier '" + std::string(spec) + "'");
  return out;
}

class BraceFormatter {
 public:
  BraceFormatter(const CallArgs& args, Interpreter& interpreter, bool escape)
      : args_(args), in_(interpreter), escape_(escape) {}

  TextPtr run(const Text& format, size_t begin, size_t end, int depth) {
    if (depth > kMaxFieldDepth) fail("Max string recursion exceeded");
    const std::string_view source = format.view();
    TextBuilder out(&in_.budget());
    size_t plain = begin;
    for (size_t at = begin; at < end;) {
      const char c = source[at];
      if (c != '{' && c != '}') {
        ++at;
        continue;
      }
      out.append(format, plain, at);
      if (at + 1 < end && source[at + 1] == c) {
        out.append(format, at, at + 1);
        at += 2;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        const size_t close = matching(source, at + 1, end);
        field(format, at + 1, close, depth, out);
        at = close + 1;
      }
      plain = at;
    }
    out.append(format, plain, end);
    return out.build(escape_);
  }

 private:
  static size_t matching(std::string_view source, size_t at, size_t end) {
    int open = 1;
    for (; at < end; ++at) {
      if (source[at] == '{') ++open;
      if (source[at] == '}' && --open == 0) return at;
    }
    fail("expected '}' before end of string");
  }

  void field(const Text& format, size_t begin, size_t end, int depth, TextBuilder& out) {
    in_.budget().step();
    const std::string_view source = format.view();
    // The name ends at the first '!' or ':' outside brackets.
    size_t name_end = begin;
    for (bool bracket = false; name_end < end; ++name_end) {
      const char c = source[name_end];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == '!' || c == ':')) break;
    }
    Value value = lookup(source.substr(begin, name_end - begin));
    size_t at = name_end;
    char conversion = 0;
    if (at < end && source[at] == '!') {
      if (at + 1 >= end) fail("end of string while looking for conversion specifier");
      conversion = source[at + 1];
      at += 2;
      if (at < end && source[at] != ':') fail("expected ':' after conversion specifier");
    }
    std::string spec;
    if (at < end) spec = run(format, at + 1, end, depth + 1)->view();
    emit(value, conversion, spec, out);
  }

  Value lookup(std::string_view name) {
    size_t at = 0;
    while (at < name.size() && name[at] != '.' && name[at] != '[') ++at;
    Value value = first(name.substr(0, at));
    while (at < name.size()) {
      if (name[at] == '.') {
        const size_t start = ++at;
        while (at < name.size() && name[at] != '.' && name[at] != '[') ++at;
        if (at == start) fail("Empty attribute in format string");
        value = in_.get_attribute(value, make_text(name.substr(start, at - start), true, &in_.budget()));
      } else if (name[at] == '[') {
        const size_t close = name.find(']', at);
        if (close == std::string_view::npos) fail("Missing ']' in format string");
        const std::string_view key = name.substr(at + 1, close - at - 1);
        if (key.empty()) fail("Empty attribute in format string");
        value = in_.get_item(value, index_or_text(key));
        at = close + 1;
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value index_or_text(std::string_view key) {
    if (key.find_first_not_of("0123456789") == std::string_view::npos && key.size() < 10)
      return static_cast<int64_t>(std::stoll(std::string(key)));
    return make_text(key, true, &in_.budget());
  }

  Value first(std::string_view name) {
    const bool number = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number) {
      for (const auto& [key, value] : args_.keyword)
        if (key == name) return value;
      fail("KeyError: '" + std::string(name) + "'");
    }
    size_t index = 0;
    if (name.empty()) {
      if (manual_) fail("cannot switch from manual field specification to automatic field numbering");
      automatic_ = true;
      index = next_++;
    } else {
      if (automatic_) fail("cannot switch from automatic field numbering to manual field specification");
      manual_ = true;
      index = name.size() > 9 ? args_.positional.size() : std::stoul(std::string(name));
    }
    if (index >= args_.positional.size())
      fail("Replacement index " + std::to_string(index) + " out of range for positional args tuple");
    return args_.positional[index];
  }

  void emit(const Value& value, char conversion, const std::string& spec_text, TextBuilder& out) {
    Heap& heap = in_.heap();
    const FormatSpec spec = parse_spec(spec_text);
    if (conversion != 0 && conversion != 's' && conversion != 'r' && conversion != 'a')
      fail(std::string("Unknown conversion specifier ") + conversion);
    if (conversion == 0 && value.is_number() && !(value.is_bool() && spec_text.empty())) {
      if (value.is_bool() && spec.type == 's') fail("Unknown format code 's' for object of type 'bool'");
      if (spec.type != 0 && std::string("bdoxXeEfFgG%n").find(spec.type) == std::string::npos)
        fail(std::string("Unknown format code '") + spec.type + "' for object of type '" + type_name(value) +
             "'");
      if (value.is_integral() && spec.precision >= 0 &&
          (spec.type == 0 || std::string("bdoxX").find(spec.type) != std::string::npos))
        fail("Precision not allowed in integer format specifier");
      const std::string digits = format_number(value, spec);
      return append_padded(out, *make_text(digits, true, &heap.budget()), spec, '>');
    }
    if (!spec_text.empty() && conversion == 0 && !value.is_text())
      fail(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
    if (spec.type != 0 && spec.type != 's')
      fail(std::string("Unknown format code '") + spec.type + "' for object of type 'str'");
    if (spec.sign != '-' || spec.alternate || spec.grouping != 0 || spec.align == '=')
      fail("a number's format specifier cannot be used with a str");
    TextPtr text;
    if (conversion == 'r' || conversion == 'a') {
      TextBuilder repr(&heap.budget());
      print_repr(value, repr, heap);
      text = repr.build();
    } else {
      text = to_text(value, heap);
    }
    if (spec.precision >= 0)
      text =
          slice_text(*text, 0, offset_of(text->view(), static_cast<size_t>(spec.precision)), &heap.budget());
    FormatSpec padding = spec;
    if (spec.zero && spec.align == 0) padding.fill = "0";
    if (escape_) text = escape_html(text, heap.budget());
    append_padded(out, *text, padding, '<');
  }

  const CallArgs& args_;
  Interpreter& in_;
  const bool escape_;  // the format is Markup
  size_t next_ = 0;
  bool automatic_ = false, manual_ = false;
};

}  // namespace

Value format_braces(const TextPtr& format, const CallArgs& args, Interpreter& interpreter) {
  return BraceFormatter(args, interpreter, format->markup()).run(*format, 0, format->size(), 0);
}

}  // namespace omnibus::jinja
