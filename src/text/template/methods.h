// Methods of str, list, tuple and dict, and what they share.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "object.h"

namespace omnibus::jinja {

class Interpreter;

struct Method {
  MethodBody body = nullptr;
  const char* name = "";
  // Python has it, the sandbox hides it: the attribute is undefined, and a key of that name is not looked up.
  bool hidden = false;
};
// body null and not hidden: the type has no such method.
Method find_method(const Value& self, std::string_view name);
Method find_text_method(std::string_view name);
Method find_list_method(std::string_view name, bool tuple);
Method find_dict_method(std::string_view name);

struct SliceBounds {
  std::optional<Integer> start, stop, step;
};
// value[start:stop:step]; a type error for what Python cannot slice.
Value slice_value(const Value& value, const SliceBounds& bounds, Heap& heap);

// The code points of a text, each a text.
std::vector<Value> characters(const Text& text, Budget& budget);
// str.splitlines() without line ends.
std::vector<Value> split_lines(const Text& text, Budget& budget);
// str.strip(chars), lstrip, rstrip; `chars` null: white space.
TextPtr strip_text(const Text& text, const Text* chars, bool left, bool right, Budget& budget);
// str.replace(): at most `count` times, all when negative.
TextPtr replace_text(const Text& text, const Text& from, const Text& to, Integer count, Budget& budget);
enum class CaseMap { kUpper, kLower, kTitle, kCapitalize, kSwap, kFold };
TextPtr map_case(const Text& text, CaseMap how, Budget& budget);
// separator.join(items) with str() of every item when `convert`, else items must be str.
TextPtr join_items(const Text& separator, const std::vector<Value>& items, bool convert, Heap& heap);

// dict(source): a mapping or pairs.
void fill_dict(Interpreter& in, Dict& dict, const Value& source);

}  // namespace omnibus::jinja
