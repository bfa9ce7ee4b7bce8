// Methods of list, tuple and dict. Python's other methods that change their object are hidden, as in Jinja2's
// immutable sandbox; append, extend, insert and pop work, because published chat templates use them.
#include <algorithm>

#include "interpreter.h"
#include "methods.h"
#include "operators.h"

namespace omnibus::jinja {
namespace {

List& list_of(const Value& self) { return *self.list(); }

Value list_append(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("append", args, {"object"}, 1);
  in.budget().allocate(2 * sizeof(Value));
  list_of(self).items.push_back(bound.at(0));
  return None{};
}

Value list_extend(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("extend", args, {"iterable"}, 1);
  const std::vector<Value> more = in.to_items(bound.at(0));
  in.budget().allocate(2 * more.size() * sizeof(Value));
  list_of(self).items.insert(list_of(self).items.end(), more.begin(), more.end());
  return None{};
}

Value list_insert(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("insert", args, {"index", "object"}, 2);
  auto& items = list_of(self).items;
  const auto size = static_cast<Integer>(items.size());
  Integer at = bound.integer(0, 0);
  if (at < 0) at = std::max<Integer>(at + size, 0);
  in.budget().bulk(items.size());
  in.budget().allocate(2 * sizeof(Value));
  items.insert(items.begin() + static_cast<ptrdiff_t>(std::min(at, size)), bound.at(1));
  return None{};
}

Value list_pop(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("pop", args, {"index"});
  auto& items = list_of(self).items;
  const auto size = static_cast<Integer>(items.size());
  if (size == 0) fail("pop from empty list");
  Integer at = bound.integer(0, -1);
  if (at < 0) at += size;
  if (at < 0 || at >= size) fail("pop index out of range");
  in.budget().bulk(items.size());
  Value item = items[static_cast<size_t>(at)];
  items.erase(items.begin() + static_cast<ptrdiff_t>(at));
  return item;
}

Value list_count(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("count", args, {"value"}, 1);
  const auto& items = list_of(self).items;
  return static_cast<int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return values_equal(item, bound.at(0), &in.budget());
  }));
}

Value list_index(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("index", args, {"value"}, 1);
  const auto& items = list_of(self).items;
  for (size_t i = 0; i < items.size(); ++i)
    if (values_equal(items[i], bound.at(0), &in.budget())) return i;
  fail("the value is not in the list");
}

Value list_copy(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("copy", args, {});
  return in.heap().list(list_of(self).items);
}

Value pair_of(Heap& heap, const Value& key, const Value& value) { return heap.list({key, value}, true); }

Value view_of(Interpreter& in, std::vector<Value> items, const char* type) {
  in.budget().allocate(items.capacity() * sizeof(Value));
  return in.heap().make<ViewObject>(std::move(items), type);
}

Value dict_items(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("items", args, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict()->entries()) items.push_back(pair_of(in.heap(), key, value));
  return view_of(in, std::move(items), "dict_items");
}

Value dict_keys(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("keys", args, {});
  return view_of(in, in.to_items(self), "dict_keys");
}

Value dict_values(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("values", args, {});
  std::vector<Value> items;
  in.budget().bulk(self.dict()->size());
  for (const auto& [key, value] : self.dict()->entries()) items.push_back(value);
  return view_of(in, std::move(items), "dict_values");
}

Value dict_get(Interpreter&, const Value& self, const CallArgs& args) {
  const BoundArgs bound("get", args, {"key", "default"}, 1);
  if (const Value* value = self.dict()->find(bound.at(0))) return *value;
  return bound.value_or(1, None{});
}

Value dict_pop(Interpreter& in, const Value& self, const CallArgs& args) {
  const BoundArgs bound("pop", args, {"key", "default"}, 1);
  in.budget().bulk(self.dict()->size() << 6);
  const Value* found = self.dict()->find(bound.at(0));
  if (found == nullptr) {
    if (!bound.has(1)) fail("pop(): the key is not in the dict");
    return bound.at(1);
  }
  Value value = *found;
  self.dict()->erase(bound.at(0));
  return value;
}

Value dict_copy(Interpreter& in, const Value& self, const CallArgs& args) {
  BoundArgs("copy", args, {});
  Dict* copy = in.heap().make<Dict>();
  fill_dict(in, *copy, self);
  return copy;
}

constexpr Method kListMethods[] = {
    {list_append, "append"},   {list_extend, "extend"},    {list_insert, "insert"},
    {list_pop, "pop"},         {list_copy, "copy"},        {nullptr, "clear", true},
    {nullptr, "remove", true}, {nullptr, "reverse", true}, {nullptr, "sort", true},
};
constexpr Method kTupleMethods[] = {{list_count, "count"}, {list_index, "index"}};
constexpr Method kDictMethods[] = {
    {dict_items, "items"},     {dict_keys, "keys"},        {dict_values, "values"},
    {dict_get, "get"},         {dict_pop, "pop"},          {dict_copy, "copy"},
    {nullptr, "clear", true},  {nullptr, "popitem", true}, {nullptr, "setdefault", true},
    {nullptr, "update", true},
};

template <size_t N>
Method search(const Method (&methods)[N], std::string_view name) {
  for (const Method& method : methods)
    if (name == method.name) return method;
  return {};
}

}  // namespace

Method find_list_method(std::string_view name, bool tuple) {
  const Method common = search(kTupleMethods, name);
  return common.body != nullptr || tuple ? common : search(kListMethods, name);
}

Method find_dict_method(std::string_view name) { return search(kDictMethods, name); }

void fill_dict(Interpreter& in, Dict& dict, const Value& source) {
  if (source.is_dict()) {
    for (const auto& [key, value] : source.dict()->entries()) dict.set(key, value, in.budget());
    return;
  }
  for (const Value& pair : in.to_items(source)) {
    const std::vector<Value> parts = in.to_items(pair);
    if (parts.size() != 2)
      fail("dictionary update sequence element has length " + std::to_string(parts.size()) +
           "; 2 is required");
    dict.set(parts[0], parts[1], in.budget());
  }
}

}  // namespace omnibus::jinja
