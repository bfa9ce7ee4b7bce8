#include "operators.h"

#include <algorithm>
#include <cstring>

#include "format.h"
#include "object.h"

namespace omnibus::jinja {
namespace {

// Python stops at its recursion limit; so do we, earlier.
constexpr int kMaxValueDepth = 200;

class Equality {
 public:
  explicit Equality(Budget* budget) : budget_(budget) {}

  bool equal(const Value& a, const Value& b, int depth) const {
    if (depth > kMaxValueDepth) fail("values are nested too deeply to compare");
    if (budget_ != nullptr) budget_->step();
    if (a.is_number() && b.is_number()) return numbers(a, b);
    if (a.type() != b.type()) return false;
    switch (a.type()) {
      case Type::kText:
        return texts(a.view(), b.view());
      case Type::kList:
        return lists(*a.list(), *b.list(), depth);
      case Type::kDict:
        return dicts(*a.dict(), *b.dict(), depth);
      case Type::kObject:
        return objects(a, b);
      default:
        return true;  // undefined, None
    }
  }

 private:
  static bool numbers(const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
    if (a.is_integral()) return static_cast<long double>(a.integer()) == b.as_double();
    if (b.is_integral()) return a.as_double() == static_cast<long double>(b.integer());
    return a.real() == b.real();
  }
  bool texts(std::string_view a, std::string_view b) const {
    if (a.size() != b.size()) return false;
    if (budget_ != nullptr && a.size() > 4096) budget_->bulk(a.size() >> 6);
    return a == b;
  }
  bool lists(const List& a, const List& b, int depth) const {
    if (a.tuple != b.tuple || a.items.size() != b.items.size()) return false;
    for (size_t i = 0; i < a.items.size(); ++i)
      if (!equal(a.items[i], b.items[i], depth + 1)) return false;
    return true;
  }
  bool dicts(const Dict& a, const Dict& b, int depth) const {
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a.entries()) {
      const Value* other = b.find(key);
      if (other == nullptr || !equal(value, *other, depth + 1)) return false;
    }
    return true;
  }
  static bool objects(const Value& a, const Value& b) {
    const RangeObject* x = as_range(a);
    const RangeObject* y = as_range(b);
    if (x == nullptr || y == nullptr) return a.object() == b.object();
    return x->length == y->length &&
           (x->length == 0 || (x->start == y->start && (x->length == 1 || x->step == y->step)));
  }

  Budget* budget_;
};

[[noreturn]] void fail_order(const char* op, const Value& a, const Value& b) {
  fail(std::string("'") + op + "' not supported between instances of '" + type_name(a) + "' and '" +
       type_name(b) + "'");
}

// -1, 0, 1, or 2 for unordered (NaN).
int order(const Value& a, const Value& b, const char* op, Budget& budget, int depth) {
  if (depth > kMaxValueDepth) fail("values are nested too deeply to compare");
  budget.step();
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_integral() && b.is_integral())
    return a.integer() < b.integer() ? -1 : (a.integer() > b.integer() ? 1 : 0);
  if (a.is_number() && b.is_number()) {
    const long double x = a.is_integral() ? static_cast<long double>(a.integer()) : a.real();
    const long double y = b.is_integral() ? static_cast<long double>(b.integer()) : b.real();
    return x < y ? -1 : (x > y ? 1 : (x == y ? 0 : 2));
  }
  // UTF-8 sorts by bytes as by code points.
  if (a.is_text() && b.is_text()) {
    const int c = a.view().compare(b.view());
    return c < 0 ? -1 : (c > 0 ? 1 : 0);
  }
  if (a.is_list() && b.is_list() && a.list()->tuple == b.list()->tuple) {
    const auto &x = a.list()->items, &y = b.list()->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!values_equal(x[i], y[i], &budget)) return order(x[i], y[i], op, budget, depth + 1);
    return x.size() < y.size() ? -1 : (x.size() > y.size() ? 1 : 0);
  }
  fail_order(op, a, b);
}

bool range_contains(const RangeObject& range, const Value& item) {
  if (!item.is_number()) return false;
  if (!item.is_integral() && item.as_double() != static_cast<double>(static_cast<int64_t>(item.as_double())))
    return false;
  const Integer i = item.is_integral() ? item.integer() : static_cast<Integer>(item.as_double());
  const Integer offset = i - range.start;
  if (offset % range.step != 0) return false;
  const Integer at = offset / range.step;
  return at >= 0 && at < static_cast<Integer>(range.length);
}

template <typename Items>
bool any_equal(const Items& items, const Value& item, Budget& budget) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& other) { return values_equal(other, item, &budget); });
}

}  // namespace

bool is_truthy(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.boolean();
    case Type::kInt:
      return value.integer() != 0;
    case Type::kFloat:
      return value.real() != 0;
    case Type::kText:
      return !value.text()->empty();
    case Type::kList:
      return !value.list()->items.empty();
    case Type::kDict:
      return value.dict()->size() != 0;
    case Type::kObject:
      break;
  }
  if (const RangeObject* range = as_range(value)) return range->length != 0;
  if (const ViewObject* view = as_view(value)) return !view->items.empty();
  return true;
}

bool values_equal(const Value& a, const Value& b, Budget* budget) { return Equality(budget).equal(a, b, 0); }

bool value_less(const Value& a, const Value& b, Budget& budget) { return order(a, b, "<", budget, 0) == -1; }

bool compare(CompareOp op, const Value& a, const Value& b, Heap& heap) {
  Budget& budget = heap.budget();
  switch (op) {
    case CompareOp::kEq:
      return values_equal(a, b, &budget);
    case CompareOp::kNe:
      return !values_equal(a, b, &budget);
    case CompareOp::kLt:
      return order(a, b, "<", budget, 0) == -1;
    case CompareOp::kLe:
      return order(a, b, "<=", budget, 0) <= 0;
    case CompareOp::kGt:
      return order(a, b, ">", budget, 0) == 1;
    case CompareOp::kGe: {
      const int c = order(a, b, ">=", budget, 0);
      return c == 0 || c == 1;
    }
    case CompareOp::kIn:
      return contains(b, a, budget);
    case CompareOp::kNotIn:
      return !contains(b, a, budget);
  }
  return false;
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  switch (container.type()) {
    case Type::kText:
      if (!item.is_text())
        fail(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
      budget.bulk(container.view().size() >> 4);
      return find_text(container.view(), item.view()) != std::string_view::npos;
    case Type::kList:
      return any_equal(container.list()->items, item, budget);
    case Type::kDict:
      return container.dict()->find(item) != nullptr;
    case Type::kUndefined:
      return false;
    case Type::kObject:
      break;
    default:
      fail(std::string("argument of type '") + type_name(container) + "' is not iterable");
  }
  if (const RangeObject* range = as_range(container)) return range_contains(*range, item);
  if (const ViewObject* view = as_view(container)) return any_equal(view->items, item, budget);
  if (IteratorObject* iterator = as_iterator(container)) {
    while (iterator->next < iterator->items.size())
      if (values_equal(iterator->items[iterator->next++], item, &budget)) return true;
    return false;
  }
  fail(std::string("argument of type '") + type_name(container) + "' is not iterable");
}

void fail_undefined(const Value& value) {
  const Undefined& u = value.undefined();
  const std::string name = u.name ? std::string(u.name->view()) : std::string();
  switch (u.kind) {
    case Undefined::Kind::kName:
      fail("'" + name + "' is undefined");
    case Undefined::Kind::kAttribute:
      fail("'" + std::string(u.detail) + " object' has no attribute '" + name + "'");
    case Undefined::Kind::kElement:
      fail(std::string(u.detail) + " object has no element " + name);
    case Undefined::Kind::kUnsafe:
      fail("access to attribute '" + name + "' of '" + u.detail + "' object is unsafe.");
    case Undefined::Kind::kHint:
      fail(u.detail);
  }
  fail("undefined value");
}

TextPtr escape_html(const TextPtr& text, Budget& budget) {
  if (text->markup()) return text;
  TextBuilder out(&budget);
  text->for_each_run(0, text->size(), [&](std::string_view piece, bool trusted) {
    size_t plain = 0;
    for (size_t i = 0; i < piece.size(); ++i) {
      const char* entity = nullptr;
      switch (piece[i]) {
        case '&':
          entity = "&amp;";
          break;
        case '<':
          entity = "&lt;";
          break;
        case '>':
          entity = "&gt;";
          break;
        case '\'':
          entity = "&#39;";
          break;
        case '"':
          entity = "&#34;";
          break;
        default:
          continue;
      }
      out.append(piece.substr(plain, i - plain), trusted);
      out.append(entity, trusted);
      plain = i + 1;
    }
    out.append(piece.substr(plain), trusted);
  });
  return out.build(true);
}

size_t find_text(std::string_view haystack, std::string_view needle, size_t from) {
  if (from > haystack.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // glibc's memmem is linear in both lengths; string_view::find is not.
  const void* hit = memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size());
  return hit == nullptr ? std::string_view::npos
                        : static_cast<size_t>(static_cast<const char*>(hit) - haystack.data());
}

size_t rfind_text(std::string_view haystack, std::string_view needle) {
  // Searching the reversed text keeps the linear bound.
  const std::string h(haystack.rbegin(), haystack.rend()), n(needle.rbegin(), needle.rend());
  const size_t at = find_text(h, n);
  return at == std::string_view::npos ? at : haystack.size() - at - needle.size();
}

}  // namespace omnibus::jinja
