// str() and repr().
#include <charconv>
#include <cmath>
#include <cstdio>

#include "ast.h"
#include "format.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

constexpr int kMaxPrintDepth = 200;

void repr_text(const Text& text, TextBuilder& out) {
  const std::string_view all = text.view();
  const bool single = all.find('\'') == std::string_view::npos || all.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  out.append(std::string_view(&quote, 1), false);
  text.for_each_run(0, text.size(), [&](std::string_view piece, bool trusted) {
    for (size_t i = 0; i < piece.size();) {
      const CodePoint c = decode_at(piece, i);
      char escape[16];
      if (c.value == quote || c.value == '\\') {
        std::snprintf(escape, sizeof escape, "\\%c", static_cast<char>(c.value));
      } else if (c.value == '\n' || c.value == '\r' || c.value == '\t') {
        std::snprintf(escape, sizeof escape, "\\%c", c.value == '\n' ? 'n' : (c.value == '\r' ? 'r' : 't'));
      } else if (c.value >= 0 && !is_printable(c.value)) {
        const char* form = c.value < 0x100 ? "\\x%02x" : (c.value < 0x10000 ? "\\u%04x" : "\\U%08x");
        std::snprintf(escape, sizeof escape, form, static_cast<unsigned>(c.value));
      } else {
        out.append(piece.substr(i, c.bytes), trusted);
        i += c.bytes;
        continue;
      }
      out.append(escape, trusted);
      i += c.bytes;
    }
  });
  out.append(std::string_view(&quote, 1), false);
}

class Printer {
 public:
  Printer(TextBuilder& out, Heap& heap) : out_(out), heap_(heap) {}

  void repr(const Value& value, int depth) {
    if (depth > kMaxPrintDepth) fail("a value is nested too deeply to print");
    heap_.budget().step();
    switch (value.type()) {
      case Type::kUndefined:
        return put("Undefined");
      case Type::kNone:
        return number("None");
      case Type::kBool:
        return number(value.boolean() ? "True" : "False");
      case Type::kInt:
        return number(format_integer(value.integer()));
      case Type::kFloat:
        return number(format_float(value.real()));
      case Type::kText:
        if (value.text()->markup()) put("Markup(");
        repr_text(*value.text(), out_);
        if (value.text()->markup()) put(")");
        return;
      case Type::kList: {
        const List& list = *value.list();
        sequence(list.items, list.tuple ? "(" : "[", list.tuple ? (list.items.size() == 1 ? ",)" : ")") : "]",
                 depth);
        return;
      }
      case Type::kDict:
        return dict(*value.dict(), depth);
      case Type::kObject:
        return object(value, depth);
    }
  }

 private:
  // Inside containers everything that is not a template's own text is untrusted.
  void put(std::string_view piece) { out_.append(piece, false); }
  void number(std::string_view digits) { out_.append(digits, false); }

  void sequence(const std::vector<Value>& items, const char* open, const char* close, int depth) {
    put(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(", ");
      repr(items[i], depth + 1);
    }
    put(close);
  }

  void dict(const Dict& dict, int depth) {
    put("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) put(", ");
      first = false;
      repr(key, depth + 1);
      put(": ");
      repr(value, depth + 1);
    }
    put("}");
  }

  void object(const Value& value, int depth) {
    if (const RangeObject* range = as_range(value)) {
      put("range(" + format_integer(range->start) + ", " + format_integer(range->stop));
      if (range->step != 1) put(", " + format_integer(range->step));
      return put(")");
    }
    if (const ViewObject* view = as_view(value)) {
      put(view->type);
      return sequence(view->items, "([", "])", depth);
    }
    if (const NamespaceObject* space = as_namespace(value)) {
      put("<Namespace ");
      dict(*space->attributes, depth);
      return put(">");
    }
    if (const auto* macro = as_object<MacroObject>(value, Object::Kind::kMacro)) {
      if (macro->node->name == nullptr) return put("<Macro anonymous>");
      put("<Macro ");
      repr_text(*macro->node->name, out_);
      return put(">");
    }
    put(std::string("<") + value.object()->type_name() + " object>");
  }

  TextBuilder& out_;
  Heap& heap_;
};

}  // namespace

std::string format_integer(Integer value) {
  if (value == 0) return "0";
  std::string digits;
  const bool negative = value < 0;
  while (value != 0) {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  }
  if (negative) digits.push_back('-');
  return {digits.rbegin(), digits.rend()};
}

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string text(buffer, end);
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;  // to_chars already writes e+16 and e-05
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

void print_value(const Value& value, TextBuilder& out, Heap& heap) {
  switch (value.type()) {
    case Type::kUndefined:
      return;
    case Type::kText:
      return out.append(*value.text());
    // Digits and constants alone cannot spell a control token, and templates count with them.
    case Type::kNone:
      return out.append("None", true);
    case Type::kBool:
      return out.append(value.boolean() ? "True" : "False", true);
    case Type::kInt:
      return out.append(format_integer(value.integer()), true);
    case Type::kFloat:
      return out.append(format_float(value.real()), true);
    case Type::kObject:
      if (auto* joiner = as_object<JoinerObject>(value, Object::Kind::kJoiner); joiner != nullptr)
        return out.append("<Joiner object>", false);
      break;
    default:
      break;
  }
  print_repr(value, out, heap);
}

TextPtr to_text(const Value& value, Heap& heap) {
  if (value.is_text()) return value.text();
  TextBuilder out(&heap.budget());
  print_value(value, out, heap);
  return out.build();
}

void print_repr(const Value& value, TextBuilder& out, Heap& heap) { Printer(out, heap).repr(value, 0); }

}  // namespace omnibus::jinja
