// Filters that choose items or values: default, map, select, reject, selectattr, rejectattr, attr.
#include <iterator>

#include "filters.h"
#include "interpreter.h"
#include "item_key.h"
#include "operators.h"

namespace omnibus::jinja {
namespace {

Value generator(Interpreter& in, std::vector<Value> items) {
  in.budget().allocate(items.capacity() * sizeof(Value));
  return in.heap().make<IteratorObject>(std::move(items), "generator");
}

Value default_value(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("default", args, {"default_value", "boolean"});
  if (input.is_undefined() || (bound.flag(1, false) && !is_truthy(input)))
    return bound.value_or(0, make_text("", true, &in.budget()));
  return input;
}

// Arguments without the first.
CallArgs rest_of(const CallArgs& args) {
  CallArgs rest;
  rest.positional.assign(args.positional.begin() + 1, args.positional.end());
  rest.keyword = args.keyword;
  return rest;
}

Value map(Interpreter& in, const Value& input, const CallArgs& args) {
  std::vector<Value> mapped;
  if (!is_truthy(input)) return generator(in, {});
  std::vector<Value> source = in.to_items(input);
  if (args.positional.empty()) {
    const BoundArgs bound("map", args, {"attribute", "default"}, 1);
    const ItemKey key(in, &bound.at(0), false);
    for (const Value& item : source) mapped.push_back(key.of(item, bound.has(1) ? &bound.at(1) : nullptr));
    return generator(in, std::move(mapped));
  }
  if (!args.positional[0].is_text()) fail("map requires a filter argument");
  const std::string_view name = args.positional[0].view();
  const FilterBody filter = find_filter(name);
  if (filter == nullptr) fail("No filter named '" + std::string(name) + "'.");
  const CallArgs rest = rest_of(args);
  for (const Value& item : source) {
    in.budget().step();
    mapped.push_back(filter(in, item, rest));
  }
  return generator(in, std::move(mapped));
}

// `kAttribute`: the first argument names what is tested. `kWanted`: the verdict that keeps an item.
template <bool kAttribute, bool kWanted>
Value choose(Interpreter& in, const Value& input, const CallArgs& args) {
  if (!is_truthy(input)) return generator(in, {});
  if (kAttribute && args.positional.empty()) fail("Missing parameter for attribute name");
  const ItemKey key(in, kAttribute ? &args.positional[0] : nullptr, false);
  CallArgs rest = kAttribute ? rest_of(args) : args;
  TestBody test = nullptr;
  if (!rest.positional.empty()) {
    if (!rest.positional[0].is_text()) fail("the name of a test must be str");
    const std::string name(rest.positional[0].view());
    test = find_test(name);
    if (test == nullptr) fail("No test named '" + name + "'.");
    rest = rest_of(rest);
  }
  std::vector<Value> kept;
  for (const Value& item : in.to_items(input)) {
    const Value tested = key.of(item);
    if ((test != nullptr ? test(in, tested, rest) : is_truthy(tested)) == kWanted) kept.push_back(item);
  }
  return generator(in, std::move(kept));
}

// x|attr('name'): attributes only, never keys.
Value attr(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("attr", args, {"name"}, 1);
  if (input.is_dict() && in.get_attribute(in.heap().make<Dict>(), bound.text(0)).is_undefined())
    return Undefined{Undefined::Kind::kAttribute, type_name(input), bound.text(0)};
  return in.get_attribute(input, bound.text(0));
}

constexpr NamedFilter kFilters[] = {
    {"default", default_value},
    {"d", default_value},
    {"map", map},
    {"select", choose<false, true>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<true, false>},
    {"attr", attr},
};

}  // namespace

FilterTable selection_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace omnibus::jinja
