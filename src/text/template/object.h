// Values with behaviour: functions, methods, macros, loops, namespaces, ranges, generators and dict views.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "value.h"

namespace omnibus::jinja {

class Interpreter;
class Scope;
struct MacroNode;
struct ForNode;

// Evaluated arguments of one call.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

class Object : public HeapItem {
 public:
  enum class Kind : uint8_t {
    kFunction,
    kMethod,
    kMacro,
    kLoop,
    kNamespace,
    kRange,
    kIterator,
    kView,
    kJoiner,
    kCycler
  };
  Kind kind() const { return kind_; }
  virtual const char* type_name() const = 0;

 protected:
  explicit Object(Kind kind) : kind_(kind) {}

 private:
  const Kind kind_;
};

using FunctionBody = Value (*)(Interpreter&, const CallArgs&);
class FunctionObject final : public Object {
 public:
  FunctionObject(const char* name_in, FunctionBody body_in)
      : Object(Kind::kFunction), name(name_in), body(body_in) {}
  const char* type_name() const override { return "function"; }
  const char* const name;
  const FunctionBody body;
};

using MethodBody = Value (*)(Interpreter&, const Value& self, const CallArgs&);
class MethodObject final : public Object {
 public:
  MethodObject(const char* name_in, Value self_in, MethodBody body_in)
      : Object(Kind::kMethod), name(name_in), self(std::move(self_in)), body(body_in) {}
  const char* type_name() const override { return "builtin_function_or_method"; }
  const char* const name;
  const Value self;
  const MethodBody body;
};

// A macro, or the `caller` of a call block; sees the scope that it was written in.
class MacroObject final : public Object {
 public:
  MacroObject(const MacroNode* node_in, std::shared_ptr<Scope> scope_in)
      : Object(Kind::kMacro), node(node_in), scope(std::move(scope_in)) {}
  const char* type_name() const override { return "Macro"; }
  const MacroNode* const node;
  const std::shared_ptr<Scope> scope;
};

class LoopObject final : public Object {
 public:
  LoopObject() : Object(Kind::kLoop) {}
  const char* type_name() const override { return "LoopContext"; }
  const ForNode* node = nullptr;
  std::shared_ptr<Scope> outer;  // where the loop stands
  std::vector<Value> items;      // rounds known so far
  std::vector<Value> source;     // of a filtered loop: candidates, tested one by one
  size_t source_next = 0;
  size_t index0 = 0;
  int32_t depth0 = 0;
  std::vector<Value> last_changed;  // what loop.changed() saw
  bool changed_called = false;
};

class NamespaceObject final : public Object {
 public:
  explicit NamespaceObject(Dict* attributes_in) : Object(Kind::kNamespace), attributes(attributes_in) {}
  const char* type_name() const override { return "Namespace"; }
  Dict* const attributes;
};

class RangeObject final : public Object {
 public:
  RangeObject(Integer start_in, Integer stop_in, Integer step_in);
  const char* type_name() const override { return "range"; }
  Value at(size_t i) const { return start + static_cast<Integer>(i) * step; }
  const Integer start, stop, step;
  const size_t length;
};

// A generator: may be walked once, has no length.
class IteratorObject final : public Object {
 public:
  IteratorObject(std::vector<Value> items_in, const char* type_in)
      : Object(Kind::kIterator), items(std::move(items_in)), type(type_in) {}
  const char* type_name() const override { return type; }
  std::vector<Value> items;
  size_t next = 0;
  const char* const type;
};

// dict.items(), keys() and values(): a length, no indexing.
class ViewObject final : public Object {
 public:
  ViewObject(std::vector<Value> items_in, const char* type_in)
      : Object(Kind::kView), items(std::move(items_in)), type(type_in) {}
  const char* type_name() const override { return type; }
  const std::vector<Value> items;
  const char* const type;
};

class JoinerObject final : public Object {
 public:
  explicit JoinerObject(Value separator_in) : Object(Kind::kJoiner), separator(std::move(separator_in)) {}
  const char* type_name() const override { return "Joiner"; }
  const Value separator;
  bool used = false;
};

class CyclerObject final : public Object {
 public:
  explicit CyclerObject(std::vector<Value> items_in) : Object(Kind::kCycler), items(std::move(items_in)) {}
  const char* type_name() const override { return "Cycler"; }
  const std::vector<Value> items;
  size_t position = 0;
};

// The object as T when it is one, else nullptr.
template <typename T>
T* as_object(const Value& value, Object::Kind kind) {
  return value.is_object() && value.object()->kind() == kind ? static_cast<T*>(value.object()) : nullptr;
}
inline NamespaceObject* as_namespace(const Value& v) {
  return as_object<NamespaceObject>(v, Object::Kind::kNamespace);
}
inline RangeObject* as_range(const Value& v) { return as_object<RangeObject>(v, Object::Kind::kRange); }
inline IteratorObject* as_iterator(const Value& v) {
  return as_object<IteratorObject>(v, Object::Kind::kIterator);
}
inline ViewObject* as_view(const Value& v) { return as_object<ViewObject>(v, Object::Kind::kView); }

// Arguments bound to parameter names, with Python's errors for too many, unknown or repeated ones.
class BoundArgs {
 public:
  BoundArgs(const char* function, const CallArgs& args, std::initializer_list<const char*> names,
            size_t required = 0);
  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& at(size_t i) const { return *values_[i]; }
  Value value_or(size_t i, Value fallback) const { return has(i) ? at(i) : std::move(fallback); }
  // Truth of argument i.
  bool flag(size_t i, bool fallback) const;
  // An int argument; anything else is a type error.
  Integer integer(size_t i, Integer fallback) const;
  // A str argument.
  TextPtr text(size_t i) const;

 private:
  const char* function_;
  std::vector<const char*> names_;
  std::vector<const Value*> values_;
};

}  // namespace omnibus::jinja
