// Operations on texts that keep provenance: what str methods, filters and loops share.
#include "format.h"
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

// Line ends of str.splitlines(); the length of the one at `at`, 0 if none.
size_t line_end_at(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == '\r') return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
  if (c == '\n' || c == '\v' || c == '\f' || (c >= 0x1C && c <= 0x1E)) return 1;
  if (static_cast<signed char>(c) >= 0) return 0;
  const CodePoint point = decode_at(text, at);
  return point.value == 0x85 || point.value == 0x2028 || point.value == 0x2029 ? point.bytes : 0;
}

// Membership in strip()'s set of characters.
class CharacterSet {
 public:
  explicit CharacterSet(const Text* chars) : chars_(chars) {}
  bool contains(const Text& text, size_t at, CodePoint c) const {
    if (chars_ == nullptr) return is_space(c.value);
    return chars_->view().find(text.view().substr(at, c.bytes)) != std::string_view::npos;
  }

 private:
  const Text* chars_;
};

// Context that a per-character case mapping needs.
struct CaseState {
  bool first = true;         // no character yet
  bool after_cased = false;  // the previous character has case
};

void map_one(std::string& out, std::string_view text, size_t at, CodePoint c, CaseMap how, CaseState& state) {
  if (c.value < 0) {
    out.append(text.substr(at, c.bytes));
  } else {
    switch (how) {
      case CaseMap::kUpper:
        append_upper(out, c.value);
        break;
      case CaseMap::kLower:
        append_lower(out, text, at);
        break;
      case CaseMap::kFold:
        append_casefold(out, c.value);
        break;
      case CaseMap::kSwap:
        if (is_upper(c.value))
          append_lower(out, text, at);
        else if (is_lower(c.value))
          append_upper(out, c.value);
        else
          append_utf8(out, c.value);
        break;
      case CaseMap::kTitle:
        if (state.after_cased)
          append_lower(out, text, at);
        else
          append_title(out, c.value);
        break;
      case CaseMap::kCapitalize:
        if (state.first)
          append_title(out, c.value);
        else
          append_lower(out, text, at);
        break;
    }
  }
  state.first = false;
  state.after_cased = is_cased(c.value);
}

}  // namespace

std::vector<Value> characters(const Text& text, Budget& budget) {
  std::vector<Value> items;
  for (size_t i = 0; i < text.size();) {
    budget.step();
    const size_t bytes = decode_at(text.view(), i).bytes;
    // Plain text also from Markup, as in Python.
    TextBuilder one(&budget);
    one.append(text, i, i + bytes);
    items.emplace_back(one.build());
    i += bytes;
  }
  return items;
}

std::vector<Value> split_lines(const Text& text, Budget& budget) {
  std::vector<Value> lines;
  budget.bulk(text.size());
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = line_end_at(text.view(), i);
    if (end == 0) {
      ++i;
      continue;
    }
    budget.step();
    lines.emplace_back(slice_text(text, begin, i, &budget));
    i += end;
    begin = i;
  }
  if (begin < text.size()) lines.emplace_back(slice_text(text, begin, text.size(), &budget));
  return lines;
}

TextPtr strip_text(const Text& text, const Text* chars, bool left, bool right, Budget& budget) {
  const CharacterSet set(chars);
  const std::string_view view = text.view();
  size_t begin = 0, end = view.size();
  if (chars != nullptr && chars->size() > 64) budget.bulk(text.size() * (chars->size() >> 6));
  while (left && begin < end) {
    const CodePoint c = decode_at(view, begin);
    if (!set.contains(text, begin, c)) break;
    begin += c.bytes;
  }
  while (right && end > begin) {
    const CodePoint c = decode_before(view, end);
    if (c.bytes > end - begin || !set.contains(text, end - c.bytes, c)) break;
    end -= c.bytes;
  }
  return slice_text(text, begin, end, &budget);
}

TextPtr replace_text(const Text& text, const Text& from, const Text& to, Integer count, Budget& budget) {
  TextBuilder out(&budget);
  const std::string_view view = text.view();
  size_t at = 0;
  while (count != 0) {
    budget.step();
    if (from.empty()) {
      // Between all characters, and at both ends.
      out.append(to);
      if (at >= view.size()) break;
      const size_t bytes = decode_at(view, at).bytes;
      out.append(text, at, at + bytes);
      at += bytes;
    } else {
      const size_t hit = find_text(view, from.view(), at);
      if (hit == std::string_view::npos) break;
      out.append(text, at, hit);
      out.append(to);
      at = hit + from.size();
    }
    if (count > 0) --count;
  }
  out.append(text, at, view.size());
  return out.build(text.markup());
}

TextPtr map_case(const Text& text, CaseMap how, Budget& budget) {
  TextBuilder out(&budget);
  CaseState state;
  const std::string_view view = text.view();
  budget.bulk(view.size());
  size_t at = 0;
  text.for_each_run(0, view.size(), [&](std::string_view piece, bool trusted) {
    const size_t end = at + piece.size();
    std::string mapped;
    while (at < end) {
      const CodePoint c = decode_at(view, at);
      map_one(mapped, view, at, c, how, state);
      at += c.bytes;
    }
    out.append(mapped, trusted);
  });
  return out.build(text.markup());
}

TextPtr join_items(const Text& separator, const std::vector<Value>& items, bool convert, Heap& heap) {
  const bool markup = separator.markup() && !convert;
  TextBuilder out(&heap.budget());
  for (size_t i = 0; i < items.size(); ++i) {
    heap.budget().step();
    if (i > 0) out.append(separator);
    if (items[i].is_text()) {
      out.append(markup ? *escape_html(items[i].text(), heap.budget()) : *items[i].text());
    } else if (convert) {
      print_value(items[i], out, heap);
    } else {
      fail("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(items[i]) +
           " found");
    }
  }
  return out.build(markup);
}

}  // namespace omnibus::jinja
