#include "value.h"

#include <cmath>
#include <functional>

#include <absl/hash/hash.h>

#include "object.h"
#include "operators.h"

namespace omnibus::jinja {
namespace {

// Smaller dicts are searched from front to back.
constexpr size_t kIndexFrom = 9;
// Values inside one key, itself included.
constexpr int kMaxKeyNodes = 150;

size_t hash_double(double d) {
  // Equal numbers of different types must meet in one bucket.
  if (std::floor(d) == d && std::fabs(d) < 1e18) return absl::Hash<int64_t>{}(static_cast<int64_t>(d));
  return absl::Hash<double>{}(d);
}

// `nodes` bounds the work (and the depth) for nested tuples.
size_t hash_value(const Value& value, int& nodes) {
  if (--nodes < 0) fail("a dictionary key is too large");
  switch (value.type()) {
    case Type::kBool:
    case Type::kInt:
      return hash_double(static_cast<double>(value.integer()));
    case Type::kFloat:
      return hash_double(value.real());
    case Type::kText: {
      const std::string_view view = value.view();
      return std::hash<std::string_view>{}(view);
    }
    case Type::kList: {
      if (!value.list()->tuple) fail("unhashable type: 'list'");
      size_t hash = 7;
      for (const Value& item : value.list()->items) hash = hash * 1000003 + hash_value(item, nodes);
      return hash;
    }
    case Type::kDict:
      fail("unhashable type: 'dict'");
    case Type::kObject:
      return std::hash<const void*>{}(value.object());
    case Type::kUndefined:
      return 1;
    case Type::kNone:
      return 2;
  }
  return 0;
}

}  // namespace

size_t ValueHash::operator()(const Value& value) const {
  int nodes = kMaxKeyNodes;
  return hash_value(value, nodes);
}

bool ValueSame::operator()(const Value& a, const Value& b) const {
  if (a.is_text() && b.is_text()) return a.view() == b.view();
  return values_equal(a, b);
}

List* Heap::list(std::vector<Value> items, bool tuple) {
  budget_.bulk(items.size());
  budget_.allocate(items.capacity() * sizeof(Value));
  return make<List>(std::move(items), tuple);
}

size_t Dict::position(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? entries_.size() : found->second;
  }
  if (!key.is_text()) ValueHash{}(key);  // refuses unhashable keys
  size_t i = 0;
  while (i < entries_.size() && !ValueSame{}(entries_[i].first, key)) ++i;
  return i;
}

const Value* Dict::find(const Value& key) const {
  const size_t at = position(key);
  return at == entries_.size() ? nullptr : &entries_[at].second;
}

void Dict::set(const Value& key, Value value, Budget& budget) {
  const size_t at = position(key);
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  budget.step();
  budget.allocate(2 * sizeof(Value) + sizeof(Value) + sizeof(size_t));
  entries_.emplace_back(key, std::move(value));
  if (entries_.size() == kIndexFrom) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  } else if (entries_.size() > kIndexFrom) {
    index_.emplace(key, at);
  }
}

bool Dict::erase(const Value& key) {
  const size_t at = position(key);
  if (at == entries_.size()) return false;
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
  index_.clear();
  if (entries_.size() >= kIndexFrom)
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  return true;
}

const char* type_name(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kText:
      return value.text()->markup() ? "Markup" : "str";
    case Type::kList:
      return value.list()->tuple ? "tuple" : "list";
    case Type::kDict:
      return "dict";
    case Type::kObject:
      return value.object()->type_name();
  }
  return "object";
}

}  // namespace omnibus::jinja
