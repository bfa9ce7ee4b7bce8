// Methods of str.
#include <algorithm>

#include "format.h"
#include "interpreter.h"
#include "methods.h"
#include "operators.h"
#include "string_split.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

const Text& str(const Value& self) { return *self.text(); }

template <CaseMap kHow>
Value cased(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("case method", args, {});
  return map_case(str(self), kHow, in.budget());
}

template <bool kLeft, bool kRight>
Value strip(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("strip", args, {"chars"});
  TextPtr chars;
  if (bound.has(0) && !bound.at(0).is_none()) chars = bound.text(0);
  return strip_text(str(self), chars.get(), kLeft, kRight, in.budget());
}

struct Window {
  size_t begin = 0, end = 0;  // bytes
  bool empty_range = false;   // begin beyond end: nothing is found, not even ""
};

// [start, end) in code points, as find() and startswith() take them.
Window window_of(const Text& text, const BoundArgs& bound, size_t first, Budget& budget) {
  Window out{0, text.size(), false};
  const bool bounded = (bound.has(first) && !bound.at(first).is_none()) ||
                       (bound.has(first + 1) && !bound.at(first + 1).is_none());
  if (!bounded) return out;
  budget.bulk(text.size());
  const auto length = static_cast<Integer>(count_code_points(text.view()));
  const auto place = [&](size_t i, Integer fallback) {
    Integer at = bound.has(i) && !bound.at(i).is_none() ? bound.integer(i, fallback) : fallback;
    if (at < 0) at = std::max<Integer>(at + length, 0);
    return at;
  };
  const Integer begin = place(first, 0), end = std::min(place(first + 1, length), length);
  out.empty_range = begin > end;
  out.begin = offset_of(text.view(), static_cast<size_t>(std::min(begin, length)));
  out.end = offset_of(text.view(), static_cast<size_t>(end));
  return out;
}

template <bool kStart>
Value affix(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound(kStart ? "startswith" : "endswith", args, {"prefix", "start", "end"}, 1);
  const Window window = window_of(str(self), bound, 1, in.budget());
  const std::string_view part =
      str(self).view().substr(window.begin, window.empty_range ? 0 : window.end - window.begin);
  const auto matches = [&](const Value& affix_value) {
    in.budget().step();
    if (!affix_value.is_text())
      fail(std::string(kStart ? "startswith" : "endswith") +
           " first arg must be str or a tuple of str, not " + type_name(affix_value));
    if (window.empty_range) return false;
    const std::string_view view = affix_value.view();
    return kStart ? part.starts_with(view) : part.ends_with(view);
  };
  if (!bound.at(0).is_list() || !bound.at(0).list()->tuple) return matches(bound.at(0));
  const std::vector<Value>& choices = bound.at(0).list()->items;
  return std::any_of(choices.begin(), choices.end(), matches);
}

// Code point position of the match, or -1.
Integer find_position(Interpreter& in, const Value& self, const BoundArgs& bound, bool last) {
  const Text& text = str(self);
  const TextPtr needle = bound.text(0);
  const Window window = window_of(text, bound, 1, in.budget());
  if (window.empty_range) return -1;
  in.budget().bulk(text.size());
  const std::string_view part = text.view().substr(window.begin, window.end - window.begin);
  const size_t at = last ? rfind_text(part, needle->view()) : find_text(part, needle->view());
  if (at == std::string_view::npos) return -1;
  return static_cast<Integer>(count_code_points(text.view().substr(0, window.begin + at)));
}

template <bool kLast, bool kMust>
Value find(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("find", args, {"sub", "start", "end"}, 1);
  const Integer at = find_position(in, self, bound, kLast);
  if (kMust && at < 0) fail("substring not found");
  return at;
}

Value count(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("count", args, {"sub", "start", "end"}, 1);
  const TextPtr needle = bound.text(0);
  const Window window = window_of(str(self), bound, 1, in.budget());
  if (window.empty_range) return 0;
  in.budget().bulk(str(self).size());
  const std::string_view part = str(self).view().substr(window.begin, window.end - window.begin);
  if (needle->empty()) return count_code_points(part) + 1;
  size_t found = 0;
  for (size_t at = find_text(part, needle->view()); at != std::string_view::npos;
       at = find_text(part, needle->view(), at + needle->size())) {
    in.budget().step();
    ++found;
  }
  return found;
}

Value replace(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("replace", args, {"old", "new", "count"}, 2);
  TextPtr to = bound.text(1);
  if (str(self).markup()) to = escape_html(to, in.budget());
  return replace_text(str(self), *bound.text(0), *to, bound.integer(2, -1), in.budget());
}

Value join(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("join", args, {"iterable"}, 1);
  return join_items(str(self), in.to_items(bound.at(0)), false, in.heap());
}

Value format(Interpreter& in, const Value& self, const CallArgs& args) {
  return format_braces(self.text(), args, in);
}

Value format_map(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("format_map", args, {"mapping"}, 1);
  if (!bound.at(0).is_dict()) fail("format_map() argument must be a mapping");
  CallArgs named;
  for (const auto& [key, value] : bound.at(0).dict()->entries())
    if (key.is_text()) named.keyword.emplace_back(std::string(key.view()), value);
  return format_braces(self.text(), named, in);
}

// True when the text is not empty and every code point passes.
template <bool (*kPasses)(int32_t)>
Value every(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("string test", args, {});
  const std::string_view view = self.view();
  in.budget().bulk(view.size());
  bool all = !view.empty();
  for (size_t i = 0; all && i < view.size();) {
    const CodePoint c = decode_at(view, i);
    all = kPasses(c.value);
    i += c.bytes;
  }
  return all;
}
bool is_alphanumeric(int32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_ascii(int32_t c) { return c >= 0 && c < 0x80; }

Value isascii(Interpreter& in, const Value& self, const CallArgs& args) {
  return self.view().empty() ? Value(true) : every<is_ascii>(in, self, args);
}

Value istitle(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("istitle", args, {});
  in.budget().bulk(self.view().size());
  bool after_cased = false, any = false;
  for (size_t i = 0; i < self.view().size();) {
    const CodePoint c = decode_at(self.view(), i);
    i += c.bytes;
    if ((is_upper(c.value) || is_title(c.value)) && after_cased) return false;
    if (is_lower(c.value) && !after_cased) return false;
    after_cased = is_cased(c.value);
    any |= after_cased;
  }
  return any;
}

// Padding: -1 left-justified, 1 right-justified, 0 centred.
template <int kSide>
Value justify(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("justify", args, {"width", "fillchar"}, 1);
  const TextPtr fill = bound.has(1) ? bound.text(1) : make_text(" ", true, &in.budget());
  if (count_code_points(fill->view()) != 1) fail("The fill character must be exactly one character long");
  const Integer width = bound.integer(0, 0);
  const auto length = static_cast<Integer>(count_code_points(self.view()));
  if (width <= length) return self;
  in.budget().check_text(static_cast<size_t>(std::min<Integer>(width, Integer{1} << 40)));
  const auto pad = static_cast<size_t>(width - length);
  // Python puts the odd character left when the width is odd.
  size_t left = kSide < 0 ? 0 : (kSide > 0 ? pad : pad / 2 + (pad & static_cast<size_t>(width) & 1));
  const bool trusted = fill->trusted_at(0);
  TextBuilder out(&in.budget());
  out.append_repeated(fill->view(), left, trusted);
  out.append(str(self));
  out.append_repeated(fill->view(), pad - left, trusted);
  return out.build(str(self).markup());
}

Value zfill(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("zfill", args, {"width"}, 1);
  const Integer width = bound.integer(0, 0);
  const auto length = static_cast<Integer>(count_code_points(self.view()));
  if (width <= length) return self;
  in.budget().check_text(static_cast<size_t>(std::min<Integer>(width, Integer{1} << 40)));
  const bool sign = self.view().starts_with('+') || self.view().starts_with('-');
  TextBuilder out(&in.budget());
  if (sign) out.append(str(self), 0, 1);
  out.append_repeated("0", static_cast<size_t>(width - length), true);
  out.append(str(self), sign ? 1 : 0, str(self).size());
  return out.build();
}

template <bool kLast>
Value partition(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("partition", args, {"sep"}, 1);
  TextPtr separator = bound.text(0);
  if (separator->empty()) fail("empty separator");
  Budget& budget = in.budget();
  if (str(self).markup()) {
    TextBuilder marked(&budget);
    marked.append(*separator);
    separator = marked.build(true);
  }
  budget.bulk(str(self).size());
  const size_t at =
      kLast ? rfind_text(self.view(), separator->view()) : find_text(self.view(), separator->view());
  const Value empty = make_text("", true, &budget);
  if (at == std::string_view::npos)
    return in.heap().list(
        kLast ? std::vector<Value>{empty, empty, self} : std::vector<Value>{self, empty, empty}, true);
  return in.heap().list({slice_text(str(self), 0, at, &budget), separator,
                         slice_text(str(self), at + separator->size(), str(self).size(), &budget)},
                        true);
}

template <bool kPrefix>
Value remove_affix(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound(kPrefix ? "removeprefix" : "removesuffix", args, {"affix"}, 1);
  const std::string_view affix_view = bound.text(0)->view();
  const size_t size = self.view().size();
  if (kPrefix && self.view().starts_with(affix_view))
    return slice_text(str(self), affix_view.size(), size, &in.budget());
  if (!kPrefix && self.view().ends_with(affix_view))
    return slice_text(str(self), 0, size - affix_view.size(), &in.budget());
  return self;
}

// Python has these; a chat template has no use for them.
Value unsupported(Interpreter&, const Value&, const CallArgs&) {
  fail("this str method is not supported in chat templates");
}

constexpr Method kMethods[] = {
    {cased<CaseMap::kUpper>, "upper"},
    {cased<CaseMap::kLower>, "lower"},
    {cased<CaseMap::kTitle>, "title"},
    {cased<CaseMap::kCapitalize>, "capitalize"},
    {cased<CaseMap::kSwap>, "swapcase"},
    {cased<CaseMap::kFold>, "casefold"},
    {strip<true, true>, "strip"},
    {strip<true, false>, "lstrip"},
    {strip<false, true>, "rstrip"},
    {method_split<false>, "split"},
    {method_split<true>, "rsplit"},
    {method_splitlines, "splitlines"},
    {affix<true>, "startswith"},
    {affix<false>, "endswith"},
    {find<false, false>, "find"},
    {find<true, false>, "rfind"},
    {find<false, true>, "index"},
    {find<true, true>, "rindex"},
    {count, "count"},
    {replace, "replace"},
    {join, "join"},
    {format, "format"},
    {format_map, "format_map"},
    {every<is_alpha>, "isalpha"},
    {every<is_alphanumeric>, "isalnum"},
    {every<is_decimal>, "isdecimal"},
    {every<is_digit>, "isdigit"},
    {every<is_numeric>, "isnumeric"},
    {every<is_space>, "isspace"},
    {isascii, "isascii"},
    {istitle, "istitle"},
    {method_case_test<true>, "isupper"},
    {method_case_test<false>, "islower"},
    {justify<-1>, "ljust"},
    {justify<1>, "rjust"},
    {justify<0>, "center"},
    {zfill, "zfill"},
    {partition<false>, "partition"},
    {partition<true>, "rpartition"},
    {remove_affix<true>, "removeprefix"},
    {remove_affix<false>, "removesuffix"},
    {unsupported, "encode"},
    {unsupported, "expandtabs"},
    {unsupported, "isidentifier"},
    {unsupported, "isprintable"},
    {unsupported, "maketrans"},
    {unsupported, "translate"},
};

}  // namespace

Method find_text_method(std::string_view name) {
  for (const Method& method : kMethods)
    if (name == method.name) return method;
  return {};
}

}  // namespace omnibus::jinja
