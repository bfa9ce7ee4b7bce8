// Values to text as Python prints them: str(), repr(), the % operator, str.format().
#pragma once

#include <string>

#include "object.h"
#include "value.h"

namespace omnibus::jinja {

class Interpreter;

std::string format_integer(Integer value);
// Shortest text that reads back as the same double: "1.0", "1e+16", "nan".
std::string format_float(double value);

// str(value); a str keeps provenance, what the engine adds for a container is untrusted.
void print_value(const Value& value, TextBuilder& out, Heap& heap);
TextPtr to_text(const Value& value, Heap& heap);
// repr(value).
void print_repr(const Value& value, TextBuilder& out, Heap& heap);

// format % arguments (a tuple, a dict for %(name)s, or one value).
Value format_percent(const TextPtr& format, const Value& arguments, Heap& heap);
// format.format(*args, **kwargs); attribute access in fields obeys the sandbox.
Value format_braces(const TextPtr& format, const CallArgs& args, Interpreter& interpreter);

// Padding and number layout shared by both mini-languages.
struct FormatSpec {
  std::string fill = " ";  // one code point
  char align = 0;          // '<', '>', '^', '=' or 0: the type's own
  char sign = '-';         // '-', '+' or ' '
  bool alternate = false;
  bool zero = false;
  size_t width = 0;
  char grouping = 0;  // ',' or '_'
  int precision = -1;
  char type = 0;
};
// Digits of a number in `spec` without padding, with sign.
std::string format_number(const Value& value, const FormatSpec& spec);
// `text` padded to spec.width.
void append_padded(TextBuilder& out, const Text& text, const FormatSpec& spec, char default_align);

}  // namespace omnibus::jinja
