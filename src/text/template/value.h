// Values of the template language, with Python's types. Texts are shared; containers and objects belong to
// the Heap of one render and are freed together at its end, so that cycles cannot leak and deep nesting
// cannot overflow a destructor.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "template_error.h"
#include "text.h"

namespace omnibus::jinja {

// Python's int, as far as 128 bits reach; beyond is an error.
__extension__ typedef __int128 Integer;

class List;
class Dict;
class Object;

// Why a value is undefined; the message is made when somebody uses it.
struct Undefined {
  enum class Kind : uint8_t { kName, kAttribute, kElement, kUnsafe, kHint };
  Kind kind = Kind::kName;
  const char* detail = "";  // type name of the owner, or the whole hint
  TextPtr name;             // may be null
  bool operator==(const Undefined&) const { return true; }
};
struct None {
  bool operator==(const None&) const { return true; }
};

enum class Type : uint8_t { kUndefined, kNone, kBool, kInt, kFloat, kText, kList, kDict, kObject };

class Value {
 public:
  Value() : data_(Undefined{}) {}
  Value(Undefined u) : data_(std::move(u)) {}
  Value(None n) : data_(n) {}
  Value(bool b) : data_(b) {}
  Value(Integer i) : data_(i) {}
  Value(int i) : data_(static_cast<Integer>(i)) {}
  Value(int64_t i) : data_(static_cast<Integer>(i)) {}
  Value(size_t i) : data_(static_cast<Integer>(i)) {}
  Value(double d) : data_(d) {}
  Value(TextPtr text) : data_(std::move(text)) {}
  Value(List* list) : data_(list) {}
  Value(Dict* dict) : data_(dict) {}
  Value(Object* object) : data_(object) {}
  // A class derived from Object; any other pointer does not compile (and never becomes a bool).
  template <typename T>
  Value(T* object) : data_(static_cast<Object*>(object)) {}

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_undefined() const { return type() == Type::kUndefined; }
  bool is_none() const { return type() == Type::kNone; }
  bool is_bool() const { return type() == Type::kBool; }
  // Python: isinstance(x, int), which a bool is too.
  bool is_integral() const { return type() == Type::kInt || type() == Type::kBool; }
  bool is_number() const { return is_integral() || type() == Type::kFloat; }
  bool is_text() const { return type() == Type::kText; }
  bool is_list() const { return type() == Type::kList; }  // list or tuple
  bool is_dict() const { return type() == Type::kDict; }
  bool is_object() const { return type() == Type::kObject; }

  const Undefined& undefined() const { return std::get<Undefined>(data_); }
  bool boolean() const { return std::get<bool>(data_); }
  // Of an int or a bool.
  Integer integer() const { return is_bool() ? Integer{boolean()} : std::get<Integer>(data_); }
  double real() const { return std::get<double>(data_); }
  // Any number.
  double as_double() const { return type() == Type::kFloat ? real() : static_cast<double>(integer()); }
  const TextPtr& text() const { return std::get<TextPtr>(data_); }
  std::string_view view() const { return text()->view(); }
  List* list() const { return std::get<List*>(data_); }
  Dict* dict() const { return std::get<Dict*>(data_); }
  Object* object() const { return std::get<Object*>(data_); }

 private:
  // The order is that of Type.
  std::variant<Undefined, None, bool, Integer, double, TextPtr, List*, Dict*, Object*> data_;
};

// What the Heap owns.
class HeapItem {
 public:
  virtual ~HeapItem() = default;
};

class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    budget_.allocate(sizeof(T) + 2 * sizeof(void*));
    auto owned = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = owned.get();
    items_.push_back(std::move(owned));
    return raw;
  }
  List* list(std::vector<Value> items, bool tuple = false);
  Budget& budget() { return budget_; }

 private:
  Budget& budget_;
  std::vector<std::unique_ptr<HeapItem>> items_;
};

// A list, or a tuple when `tuple`.
class List final : public HeapItem {
 public:
  List(std::vector<Value> items_in, bool tuple_in) : items(std::move(items_in)), tuple(tuple_in) {}
  std::vector<Value> items;
  const bool tuple;
};

struct ValueHash {
  size_t operator()(const Value& value) const;  // fails on lists and dicts
};
struct ValueSame {
  bool operator()(const Value& a, const Value& b) const;
};

// Keeps insertion order, as Python does.
class Dict final : public HeapItem {
 public:
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  // nullptr when absent. An unhashable key is a type error.
  const Value* find(const Value& key) const;
  void set(const Value& key, Value value, Budget& budget);
  // False when absent.
  bool erase(const Value& key);

 private:
  size_t position(const Value& key) const;

  std::vector<std::pair<Value, Value>> entries_;
  absl::flat_hash_map<Value, size_t, ValueHash, ValueSame> index_;  // only beyond a few entries
};

// Python's type name, for messages.
const char* type_name(const Value& value);

}  // namespace omnibus::jinja
