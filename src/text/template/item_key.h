// What sort, unique, min, max, map and groupby look at in each item.
#pragma once

#include <string_view>
#include <vector>

#include "object.h"

namespace omnibus::jinja {

class Interpreter;

// "address.city" or an index, looked up as x[part]; with `ignore_case`, a str key is lower-cased.
class ItemKey {
 public:
  // `attribute` null or None: the item itself.
  ItemKey(Interpreter& in, const Value* attribute, bool ignore_case);
  // `fallback` (may be null) stands in for an undefined part.
  Value of(const Value& item, const Value* fallback = nullptr) const;

 private:
  Interpreter& in_;
  std::vector<Value> path_;
  bool ignore_case_;
};

// Stable, by `keys`, with Python's type errors; `reverse` keeps equal items in order.
std::vector<Value> sorted_items(Interpreter& in, const std::vector<Value>& items,
                                const std::vector<Value>& keys, bool reverse);
// len(value).
size_t length_of(const Value& value, Budget& budget);

}  // namespace omnibus::jinja
