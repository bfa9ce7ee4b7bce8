// Filters over lists, dicts and other sequences.
#include <algorithm>
#include <iterator>

#include "filters.h"
#include "format.h"
#include "interpreter.h"
#include "item_key.h"
#include "methods.h"
#include "operators.h"

namespace omnibus::jinja {
namespace {

Value empty_hint(const char* hint) { return Undefined{Undefined::Kind::kHint, hint, nullptr}; }

Value generator(Interpreter& in, std::vector<Value> items, const char* type = "generator") {
  in.budget().allocate(items.capacity() * sizeof(Value));
  return in.heap().make<IteratorObject>(std::move(items), type);
}

Value length(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("length", args, {});
  return length_of(input, in.budget());
}

Value first(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("first", args, {});
  if (IteratorObject* iterator = as_iterator(input))
    return iterator->next < iterator->items.size() ? iterator->items[iterator->next++]
                                                   : empty_hint("No first item, sequence was empty.");
  if (input.is_list() && !input.list()->items.empty()) return input.list()->items.front();
  const std::vector<Value> items = in.to_items(input);
  return items.empty() ? empty_hint("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("last", args, {});
  if (as_iterator(input) != nullptr) fail(std::string("'") + type_name(input) + "' object is not reversible");
  if (input.is_list() && !input.list()->items.empty()) return input.list()->items.back();
  const std::vector<Value> items = in.to_items(input);
  return items.empty() ? empty_hint("No last item, sequence was empty.") : items.back();
}

Value join(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("join", args, {"d", "attribute"});
  std::vector<Value> items = in.to_items(input);
  if (bound.has(1) && !bound.at(1).is_none()) {
    const ItemKey key(in, &bound.at(1), false);
    for (Value& item : items) item = key.of(item);
  }
  const TextPtr separator =
      bound.has(0) ? to_text(bound.at(0), in.heap()) : make_text("", true, &in.budget());
  return join_items(*separator, items, true, in.heap());
}

Value list(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("list", args, {});
  return in.heap().list(in.to_items(input));
}

Value items(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("items", args, {});
  if (input.is_undefined()) return generator(in, {});
  if (!input.is_dict()) fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.dict()->entries())
    pairs.emplace_back(in.heap().list({key, value}, true));
  return generator(in, std::move(pairs));
}

Value dictsort(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_dict()) fail(std::string("'") + type_name(input) + "' object has no attribute 'items'");
  const std::string by = bound.has(1) ? std::string(bound.text(1)->view()) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  const ItemKey fold(in, nullptr, !bound.flag(0, false));
  std::vector<Value> pairs, keys;
  for (const auto& [key, value] : input.dict()->entries()) {
    pairs.emplace_back(in.heap().list({key, value}, true));
    keys.push_back(fold.of(by == "key" ? key : value));
  }
  return in.heap().list(sorted_items(in, pairs, keys, bound.flag(2, false)));
}

Value sort(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool fold = !bound.flag(1, false);
  // "a,b" sorts by several attributes.
  std::vector<ItemKey> parts;
  if (bound.has(2) && bound.at(2).is_text()) {
    CallArgs comma;
    comma.positional.emplace_back(make_text(",", true, &in.budget()));
    const Value names = find_text_method("split").body(in, bound.at(2), comma);
    for (const Value& name : names.list()->items) parts.emplace_back(in, &name, fold);
  } else {
    parts.emplace_back(in, bound.has(2) ? &bound.at(2) : nullptr, fold);
  }
  const std::vector<Value> values = in.to_items(input);
  std::vector<Value> keys;
  for (const Value& value : values) {
    std::vector<Value> key;
    for (const ItemKey& part : parts) key.push_back(part.of(value));
    keys.emplace_back(in.heap().list(std::move(key)));
  }
  return in.heap().list(sorted_items(in, values, keys, bound.flag(0, false)));
}

Value unique(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("unique", args, {"case_sensitive", "attribute"});
  const ItemKey key(in, bound.has(1) ? &bound.at(1) : nullptr, !bound.flag(0, false));
  Dict* seen = in.heap().make<Dict>();
  std::vector<Value> kept;
  for (const Value& item : in.to_items(input)) {
    const Value k = key.of(item);
    if (seen->find(k) != nullptr) continue;
    seen->set(k, true, in.budget());
    kept.push_back(item);
  }
  return generator(in, std::move(kept));
}

Value reverse(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("reverse", args, {});
  if (input.is_text()) {
    SliceBounds backwards;
    backwards.step = -1;
    return slice_value(input, backwards, in.heap());
  }
  if (input.is_none() || input.is_number()) fail("argument must be iterable");
  std::vector<Value> reversed = in.to_items(input);
  std::reverse(reversed.begin(), reversed.end());
  if (as_iterator(input) != nullptr) return in.heap().list(std::move(reversed));
  return generator(in, std::move(reversed), "reversed");
}

template <bool kMax>
Value extreme(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound(kMax ? "max" : "min", args, {"case_sensitive", "attribute"});
  const ItemKey key(in, bound.has(1) ? &bound.at(1) : nullptr, !bound.flag(0, false));
  const std::vector<Value> values = in.to_items(input);
  if (values.empty()) return empty_hint("No aggregated item, sequence was empty.");
  size_t best = 0;
  Value best_key = key.of(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    Value k = key.of(values[i]);
    const bool better = kMax ? value_less(best_key, k, in.budget()) : value_less(k, best_key, in.budget());
    if (!better) continue;
    best = i;
    best_key = std::move(k);
  }
  return values[best];
}

Value sum(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("sum", args, {"attribute", "start"});
  const ItemKey key(in, bound.has(0) ? &bound.at(0) : nullptr, false);
  Value total = bound.value_or(1, 0);
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : in.to_items(input)) total = binary(BinaryOp::kAdd, total, key.of(item), in.heap());
  return total;
}

Value batch(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("batch", args, {"linecount", "fill_with"}, 1);
  const Integer size = bound.integer(0, 1);
  std::vector<Value> rows, row;
  const auto flush = [&] {
    rows.emplace_back(in.heap().list(std::move(row)));
    row.clear();
  };
  for (const Value& item : in.to_items(input)) {
    if (static_cast<Integer>(row.size()) == size) flush();
    row.push_back(item);
  }
  if (!row.empty()) {
    if (bound.has(1) && !bound.at(1).is_none())
      while (static_cast<Integer>(row.size()) < size) {
        in.budget().step();
        row.push_back(bound.at(1));
      }
    flush();
  }
  return generator(in, std::move(rows));
}

Value slice(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("slice", args, {"slices", "fill_with"}, 1);
  const std::vector<Value> all = in.to_items(input);
  const Integer slices = bound.integer(0, 1);
  if (slices == 0) fail("integer division or modulo by zero");
  std::vector<Value> columns;
  if (slices < 0) return generator(in, {});
  const auto size = static_cast<Integer>(all.size());
  const Integer per = size / slices, extra = size % slices;
  Integer at = 0;
  for (Integer i = 0; i < slices; ++i) {
    in.budget().step();
    const Integer end = at + per + (i < extra ? 1 : 0);
    std::vector<Value> column(all.begin() + static_cast<ptrdiff_t>(at),
                              all.begin() + static_cast<ptrdiff_t>(end));
    if (bound.has(1) && !bound.at(1).is_none() && i >= extra) column.push_back(bound.at(1));
    columns.emplace_back(in.heap().list(std::move(column)));
    at = end;
  }
  return generator(in, std::move(columns));
}

Value groupby(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const ItemKey key(in, &bound.at(0), !bound.flag(2, false)), shown(in, &bound.at(0), false);
  const Value* fallback = bound.has(1) ? &bound.at(1) : nullptr;
  std::vector<Value> values = in.to_items(input), keys;
  for (const Value& value : values) keys.push_back(key.of(value, fallback));
  values = sorted_items(in, values, keys, false);
  std::vector<Value> groups, members;
  for (size_t i = 0; i < values.size(); ++i) {
    members.push_back(values[i]);
    const bool more = i + 1 < values.size() && values_equal(key.of(values[i], fallback),
                                                            key.of(values[i + 1], fallback), &in.budget());
    if (more) continue;
    const Value name = shown.of(members.front(), fallback);
    groups.emplace_back(in.heap().list({name, in.heap().list(std::move(members))}, true));
    members.clear();
  }
  return in.heap().list(std::move(groups));
}

constexpr NamedFilter kFilters[] = {
    {"length", length},   {"count", length},       {"first", first},       {"last", last}, {"join", join},
    {"list", list},       {"items", items},        {"dictsort", dictsort}, {"sort", sort}, {"unique", unique},
    {"reverse", reverse}, {"min", extreme<false>}, {"max", extreme<true>}, {"sum", sum},   {"batch", batch},
    {"slice", slice},     {"groupby", groupby},
};

}  // namespace

FilterTable sequence_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace omnibus::jinja
