#include "item_key.h"

#include <algorithm>
#include <numeric>

#include "interpreter.h"
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {

ItemKey::ItemKey(Interpreter& in, const Value* attribute, bool ignore_case)
    : in_(in), ignore_case_(ignore_case) {
  if (attribute == nullptr || attribute->is_none()) return;
  if (!attribute->is_text()) {
    path_.push_back(*attribute);
    return;
  }
  const std::string_view view = attribute->view();
  size_t begin = 0;
  while (true) {
    const size_t dot = std::min(view.find('.', begin), view.size());
    const std::string_view part = view.substr(begin, dot - begin);
    const bool number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (number)
      path_.emplace_back(static_cast<int64_t>(std::stoll(std::string(part))));
    else
      path_.emplace_back(make_text(part, true, &in.budget()));
    if (dot == view.size()) break;
    begin = dot + 1;
  }
}

Value ItemKey::of(const Value& item, const Value* fallback) const {
  in_.budget().step();
  Value value = item;
  for (const Value& part : path_) {
    value = in_.get_item(value, part);
    if (value.is_undefined() && fallback != nullptr && !fallback->is_none()) value = *fallback;
  }
  if (ignore_case_ && value.is_text()) return map_case(*value.text(), CaseMap::kLower, in_.budget());
  return value;
}

std::vector<Value> sorted_items(Interpreter& in, const std::vector<Value>& items,
                                const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? value_less(keys[b], keys[a], in.budget()) : value_less(keys[a], keys[b], in.budget());
  });
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

size_t length_of(const Value& value, Budget& budget) {
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kText:
      if (value.text()->ascii()) return value.text()->size();
      budget.bulk(value.text()->size());
      return count_code_points(value.view());
    case Type::kList:
      return value.list()->items.size();
    case Type::kDict:
      return value.dict()->size();
    default:
      break;
  }
  if (const RangeObject* range = as_range(value)) return range->length;
  if (const ViewObject* view = as_view(value)) return view->items.size();
  fail(std::string("object of type '") + type_name(value) + "' has no len()");
}

}  // namespace omnibus::jinja
