#include "string_split.h"

#include <algorithm>

#include "interpreter.h"
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

std::vector<Value> split_spaces(const Text& text, Integer limit, Budget& budget) {
  std::vector<Value> parts;
  const std::string_view view = text.view();
  budget.bulk(view.size());
  size_t at = 0;
  while (true) {
    while (at < view.size()) {
      const CodePoint c = decode_at(view, at);
      if (!is_space(c.value)) break;
      at += c.bytes;
    }
    if (at >= view.size()) return parts;
    budget.step();
    if (limit == 0) {
      // The rest stays whole, with its white space at the end.
      parts.emplace_back(slice_text(text, at, view.size(), &budget));
      return parts;
    }
    const size_t begin = at;
    while (at < view.size()) {
      const CodePoint c = decode_at(view, at);
      if (is_space(c.value)) break;
      at += c.bytes;
    }
    parts.emplace_back(slice_text(text, begin, at, &budget));
    if (limit > 0) --limit;
  }
}

std::vector<Value> rsplit_spaces(const Text& text, Integer limit, Budget& budget) {
  std::vector<Value> parts;
  const std::string_view view = text.view();
  budget.bulk(view.size());
  size_t end = view.size();
  while (true) {
    while (end > 0) {
      const CodePoint c = decode_before(view, end);
      if (!is_space(c.value)) break;
      end -= c.bytes;
    }
    if (end == 0) break;
    budget.step();
    if (limit == 0) {
      parts.emplace_back(slice_text(text, 0, end, &budget));
      break;
    }
    size_t begin = end;
    while (begin > 0) {
      const CodePoint c = decode_before(view, begin);
      if (is_space(c.value)) break;
      begin -= c.bytes;
    }
    parts.emplace_back(slice_text(text, begin, end, &budget));
    end = begin;
    if (limit > 0) --limit;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_separator(const Text& text, std::string_view separator, Integer limit,
                                   Budget& budget) {
  std::vector<Value> parts;
  size_t begin = 0;
  while (limit != 0) {
    const size_t hit = find_text(text.view(), separator, begin);
    if (hit == std::string_view::npos) break;
    budget.step();
    parts.emplace_back(slice_text(text, begin, hit, &budget));
    begin = hit + separator.size();
    if (limit > 0) --limit;
  }
  parts.emplace_back(slice_text(text, begin, text.size(), &budget));
  return parts;
}

std::vector<Value> rsplit_separator(const Text& text, std::string_view separator, Integer limit,
                                    Budget& budget) {
  std::vector<Value> parts;
  // One pass over the reversed text keeps the whole linear.
  const std::string reversed(text.view().rbegin(), text.view().rend());
  const std::string needle(separator.rbegin(), separator.rend());
  size_t end = text.size(), from = 0;
  while (limit != 0) {
    const size_t hit = find_text(reversed, needle, from);
    if (hit == std::string_view::npos) break;
    budget.step();
    const size_t begin = text.size() - hit;
    parts.emplace_back(slice_text(text, begin, end, &budget));
    end = begin - separator.size();
    from = hit + needle.size();
    if (limit > 0) --limit;
  }
  parts.emplace_back(slice_text(text, 0, end, &budget));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

template <bool kFromRight>
Value method_split(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound(kFromRight ? "rsplit" : "split", args, {"sep", "maxsplit"});
  const Text& text = *self.text();
  const Integer limit = bound.integer(1, -1);
  Budget& budget = in.budget();
  budget.bulk(text.size());
  std::vector<Value> parts;
  if (!bound.has(0) || bound.at(0).is_none()) {
    parts = kFromRight ? rsplit_spaces(text, limit, budget) : split_spaces(text, limit, budget);
  } else {
    const TextPtr separator = bound.text(0);
    if (separator->empty()) fail("empty separator");
    parts = kFromRight ? rsplit_separator(text, separator->view(), limit, budget)
                       : split_separator(text, separator->view(), limit, budget);
  }
  return in.heap().list(std::move(parts));
}
template Value method_split<false>(Interpreter&, const Value&, const CallArgs&);
template Value method_split<true>(Interpreter&, const Value&, const CallArgs&);

Value method_splitlines(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("splitlines", args, {"keepends"});
  const Text& text = *self.text();
  std::vector<Value> lines = split_lines(text, in.budget());
  if (!bound.flag(0, false)) return in.heap().list(std::move(lines));
  // With its end, a line reaches to where the next one begins.
  size_t begin = 0;
  for (Value& line : lines) {
    size_t end = begin + line.view().size();
    if (end < text.size())
      end += text.view().substr(end, 2) == "\r\n" ? 2 : decode_at(text.view(), end).bytes;
    line = slice_text(text, begin, end, &in.budget());
    begin = end;
  }
  return in.heap().list(std::move(lines));
}

template <bool kUpper>
Value method_case_test(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs(kUpper ? "isupper" : "islower", args, {});
  in.budget().bulk(self.view().size());
  bool any = false;
  for (size_t i = 0; i < self.view().size();) {
    const CodePoint c = decode_at(self.view(), i);
    i += c.bytes;
    if (is_title(c.value) || (kUpper ? is_lower(c.value) : is_upper(c.value))) return false;
    any |= kUpper ? is_upper(c.value) : is_lower(c.value);
  }
  return any;
}
template Value method_case_test<false>(Interpreter&, const Value&, const CallArgs&);
template Value method_case_test<true>(Interpreter&, const Value&, const CallArgs&);

}  // namespace omnibus::jinja
