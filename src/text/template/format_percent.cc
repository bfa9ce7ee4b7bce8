// The % operator of str: "%s has %d" % (name, count), "%(name)s" % mapping.
#include <cctype>

#include "format.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(const Text& format, const Value& arguments, Heap& heap)
      : format_(format), source_(format.view()), arguments_(arguments), heap_(heap), out_(&heap.budget()) {
    tuple_ = arguments.is_list() && arguments.list()->tuple ? arguments.list() : nullptr;
  }

  TextPtr run() {
    size_t plain = 0;
    while (at_ < source_.size()) {
      if (source_[at_] != '%') {
        ++at_;
        continue;
      }
      out_.append(format_, plain, at_);
      ++at_;
      directive();
      plain = at_;
    }
    out_.append(format_, plain, source_.size());
    // Python takes whatever has items by key for a mapping, which need not be used up.
    const bool mapping = arguments_.is_dict() || arguments_.is_list() || arguments_.is_undefined() ||
                         as_range(arguments_) != nullptr;
    if (tuple_ != nullptr ? next_ < tuple_->items.size() : next_ == 0 && !mapping)
      fail("not all arguments converted during string formatting");
    return out_.build(format_.markup());
  }

 private:
  char peek() {
    if (at_ >= source_.size()) fail("incomplete format");
    return source_[at_];
  }

  const Value& next() {
    if (tuple_ != nullptr) {
      if (next_ >= tuple_->items.size()) fail("not enough arguments for format string");
      return tuple_->items[next_++];
    }
    if (next_++ > 0) fail("not enough arguments for format string");
    return arguments_;
  }

  size_t number(bool* star) {
    if (peek() == '*') {
      ++at_;
      const Value& value = next();
      if (!value.is_integral()) fail("* wants int");
      *star = true;
      if (value.integer() < 0) fail("negative width or precision in a format");
      return value.integer() > 1'000'000'000 ? 1'000'000'000 : static_cast<size_t>(value.integer());
    }
    size_t n = 0;
    while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
      n = n * 10 + static_cast<size_t>(source_[at_++] - '0');
      if (n > 1'000'000'000) fail("width too big");
    }
    return n;
  }

  void directive() {
    heap_.budget().step();
    const Value* named = nullptr;
    if (peek() == '(') {
      const size_t close = source_.find(')', at_);
      if (close == std::string_view::npos) fail("incomplete format key");
      if (!arguments_.is_dict()) fail("format requires a mapping");
      const TextPtr key = slice_text(format_, at_ + 1, close, &heap_.budget());
      named = arguments_.dict()->find(key);
      if (named == nullptr) fail("KeyError: '" + std::string(key->view()) + "'");
      at_ = close + 1;
    }
    FormatSpec spec;
    for (bool more = true; more;) {
      switch (peek()) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign != '+') spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          spec.zero = true;
          break;
        default:
          more = false;
          continue;
      }
      ++at_;
    }
    bool star = false;
    spec.width = number(&star);
    if (peek() == '.') {
      ++at_;
      const size_t precision = number(&star);
      spec.precision = static_cast<int>(std::min<size_t>(precision, 1'000'000'000));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    const char type = peek();
    ++at_;
    if (type == '%') return out_.append("%", format_.trusted_at(at_ - 1));
    convert(type, spec, named != nullptr ? *named : next());
  }

  void convert(char type, FormatSpec spec, const Value& value) {
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        return text(type, spec, value);
      case 'c':
        return character(spec, value);
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        break;
      case 'x':
      case 'X':
      case 'o':
        if (!value.is_integral())
          fail(std::string("%") + type + " format: an integer is required, not " + type_name(value));
        spec.type = type;
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        spec.type = type;
        break;
      default:
        fail(std::string("unsupported format character '") + type + "'");
    }
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_number())
      fail(std::string(spec.type == 'd' ? "%d format: a real number is required, not "
                                        : "must be real number, not ") +
           type_name(value));
    Value digits_of = value;
    if (spec.type == 'd' && value.type() == Type::kFloat) {
      if (!(value.real() > -1e38 && value.real() < 1e38)) fail("cannot convert float to integer");
      digits_of = static_cast<Integer>(value.real());
    }
    if (spec.align == '<') spec.zero = false;
    if (spec.type == 'd' && spec.precision >= 0) integer_precision(digits_of, spec);
    const TextPtr digits =
        make_text(precise_.empty() ? format_number(digits_of, spec) : precise_, true, &heap_.budget());
    precise_.clear();
    append_padded(out_, *digits, spec, '>');
  }

  // "%.3d": at least three digits.
  void integer_precision(const Value& value, const FormatSpec& spec) {
    FormatSpec inner = spec;
    inner.zero = true;
    inner.align = 0;
    const bool sign = value.integer() < 0 || spec.sign != '-';
    inner.width = static_cast<size_t>(spec.precision) + (sign ? 1 : 0);
    precise_ = format_number(value, inner);
  }

  void text(char type, const FormatSpec& spec, const Value& value) {
    TextPtr printed;
    if (type == 's') {
      printed = to_text(value, heap_);
      if (format_.markup()) printed = escape_html(printed, heap_.budget());
    } else {
      TextBuilder repr(&heap_.budget());
      print_repr(value, repr, heap_);
      printed = repr.build();
    }
    if (spec.precision >= 0)
      printed = slice_text(*printed, 0, offset_of(printed->view(), static_cast<size_t>(spec.precision)),
                           &heap_.budget());
    append_padded(out_, *printed, spec, '>');
  }

  void character(const FormatSpec& spec, const Value& value) {
    std::string one;
    bool trusted = true;
    if (value.is_integral()) {
      if (value.integer() < 0 || value.integer() > 0x10FFFF) fail("%c arg not in range(0x110000)");
      append_utf8(one, static_cast<int32_t>(value.integer()));
    } else if (value.is_text() && count_code_points(value.view()) == 1) {
      one = value.view();
      trusted = value.text()->trusted_at(0);
    } else {
      fail("%c requires int or char");
    }
    append_padded(out_, *make_text(one, trusted, &heap_.budget()), spec, '>');
  }

  const Text& format_;
  const std::string_view source_;
  const Value arguments_;
  Heap& heap_;
  TextBuilder out_;
  const List* tuple_ = nullptr;
  size_t at_ = 0;
  size_t next_ = 0;
  std::string precise_;
};

}  // namespace

Value format_percent(const TextPtr& format, const Value& arguments, Heap& heap) {
  return PercentFormatter(*format, arguments, heap).run();
}

}  // namespace omnibus::jinja
