// x.name and x[key] as Jinja2's immutable sandbox resolves them: attributes before keys for the dot, keys
// before attributes for brackets, undefined when there is neither.
#include "format.h"
#include "interpreter.h"
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

Value undefined_attribute(const Value& object, const TextPtr& name) {
  return Undefined{Undefined::Kind::kAttribute, type_name(object), name};
}

// Index from the end when negative; nothing when out of range.
std::optional<size_t> position(Integer index, size_t size) {
  if (index < 0) index += static_cast<Integer>(size);
  if (index < 0 || index >= static_cast<Integer>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

Value character_at(const Text& text, Integer index, Budget& budget, bool* found) {
  if (!text.ascii()) budget.bulk(text.size());
  const size_t size = text.ascii() ? text.size() : count_code_points(text.view());
  const auto at = position(index, size);
  *found = at.has_value();
  if (!at) return {};
  const size_t begin = text.ascii() ? *at : offset_of(text.view(), *at);
  return slice_text(text, begin, begin + decode_at(text.view(), begin).bytes, &budget);
}

Value cycler_next(Interpreter&, const Value& self, const CallArgs& args) {
  BoundArgs("next", args, {});
  auto* cycler = static_cast<CyclerObject*>(self.object());
  const Value item = cycler->items[cycler->position];
  cycler->position = (cycler->position + 1) % cycler->items.size();
  return item;
}

Value cycler_reset(Interpreter&, const Value& self, const CallArgs& args) {
  BoundArgs("reset", args, {});
  static_cast<CyclerObject*>(self.object())->position = 0;
  return None{};
}

Value loop_cycle(Interpreter&, const Value& self, const CallArgs& args) {
  if (args.positional.empty()) fail("no items for cycling given");
  return args.positional[static_cast<LoopObject*>(self.object())->index0 % args.positional.size()];
}

Value loop_changed(Interpreter& in, const Value& self, const CallArgs& args) {
  auto* loop = static_cast<LoopObject*>(self.object());
  bool same = loop->changed_called && loop->last_changed.size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i)
    same = values_equal(loop->last_changed[i], args.positional[i], &in.budget());
  loop->changed_called = true;
  loop->last_changed = args.positional;
  return !same;
}

Value macro_attribute(const MacroObject& macro, std::string_view name, Heap& heap, bool* found) {
  const MacroNode& node = *macro.node;
  if (name == "name") return node.name ? Value(node.name) : Value(None{});
  if (name == "caller") return node.uses_caller;
  if (name == "catch_kwargs") return node.uses_kwargs;
  if (name == "catch_varargs") return node.uses_varargs;
  if (name == "arguments") {
    std::vector<Value> names;
    for (const auto& parameter : node.parameters)
      names.emplace_back(make_text(parameter.name, true, &heap.budget()));
    return heap.list(std::move(names), true);
  }
  *found = false;
  return {};
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  if (self.is_text()) return find_text_method(name);
  if (self.is_list()) return find_list_method(name, self.list()->tuple);
  if (self.is_dict()) return find_dict_method(name);
  return {};
}

Value Interpreter::loop_attribute(LoopObject& loop, const Value& self, std::string_view name, bool* found) {
  const auto length = [&] {
    fill_loop(loop, loop.items.size() + loop.source.size());
    return loop.items.size();
  };
  if (name == "index0") return loop.index0;
  if (name == "index") return loop.index0 + 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return !fill_loop(loop, loop.index0 + 2);
  if (name == "length") return length();
  if (name == "revindex") return length() - loop.index0;
  if (name == "revindex0") return length() - loop.index0 - 1;
  if (name == "depth") return static_cast<int64_t>(loop.depth0) + 1;
  if (name == "depth0") return static_cast<int64_t>(loop.depth0);
  if (name == "previtem") {
    if (loop.index0 > 0) return loop.items[loop.index0 - 1];
    return Undefined{Undefined::Kind::kHint, "there is no previous item", nullptr};
  }
  if (name == "nextitem") {
    if (fill_loop(loop, loop.index0 + 2)) return loop.items[loop.index0 + 1];
    return Undefined{Undefined::Kind::kHint, "there is no next item", nullptr};
  }
  if (name == "cycle") return heap_.make<MethodObject>("cycle", self, loop_cycle);
  if (name == "changed") return heap_.make<MethodObject>("changed", self, loop_changed);
  *found = false;
  return {};
}

Value Interpreter::object_attribute(const Value& object, std::string_view name, bool* found) {
  *found = true;
  switch (object.object()->kind()) {
    case Object::Kind::kLoop:
      return loop_attribute(*static_cast<LoopObject*>(object.object()), object, name, found);
    case Object::Kind::kMacro:
      return macro_attribute(*static_cast<MacroObject*>(object.object()), name, heap_, found);
    case Object::Kind::kCycler:
      if (name == "next") return heap_.make<MethodObject>("next", object, cycler_next);
      if (name == "reset") return heap_.make<MethodObject>("reset", object, cycler_reset);
      if (name == "current") {
        const auto* cycler = static_cast<CyclerObject*>(object.object());
        return cycler->items[cycler->position];
      }
      break;
    case Object::Kind::kRange: {
      const RangeObject* range = as_range(object);
      if (name == "start") return range->start;
      if (name == "stop") return range->stop;
      if (name == "step") return range->step;
      break;
    }
    default:
      break;
  }
  *found = false;
  return {};
}

Value Interpreter::get_attribute(const Value& object, const TextPtr& name) {
  if (object.is_undefined()) fail_undefined(object);
  const Method method = find_method(object, name->view());
  if (method.hidden) return Undefined{Undefined::Kind::kUnsafe, type_name(object), name};
  if (method.body != nullptr) return heap_.make<MethodObject>(method.name, object, method.body);
  if (object.is_dict()) {
    if (const Value* value = object.dict()->find(name)) return *value;
  } else if (const NamespaceObject* space = as_namespace(object)) {
    const Value* value = name->view().substr(0, 1) == "_" ? nullptr : space->attributes->find(name);
    if (value != nullptr) return *value;
  } else if (object.is_object()) {
    bool found = false;
    Value value = object_attribute(object, name->view(), &found);
    if (found) return value;
  }
  return undefined_attribute(object, name);
}

Value Interpreter::get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  bool found = false;
  if (object.is_dict()) {
    const bool hashable = !key.is_dict() && !(key.is_list() && !key.list()->tuple);
    if (const Value* value = hashable ? object.dict()->find(key) : nullptr) return *value;
  } else if (key.is_integral()) {
    if (object.is_list()) {
      const auto at = position(key.integer(), object.list()->items.size());
      if (at) return object.list()->items[*at];
    } else if (object.is_text()) {
      Value character = character_at(*object.text(), key.integer(), budget_, &found);
      if (found) return character;
    } else if (const RangeObject* range = as_range(object)) {
      const auto at = position(key.integer(), range->length);
      if (at) return range->at(*at);
    }
  }
  if (!key.is_text()) {
    if (object.is_list() || object.is_text())
      return Undefined{Undefined::Kind::kElement, type_name(object), to_text(key, heap_)};
    return Undefined{Undefined::Kind::kElement, type_name(object), nullptr};
  }
  // A key that is absent may still name a method: d['items'].
  const Method method = find_method(object, key.view());
  if (method.hidden) return Undefined{Undefined::Kind::kUnsafe, type_name(object), key.text()};
  if (method.body != nullptr) return heap_.make<MethodObject>(method.name, object, method.body);
  if (object.is_object()) return get_attribute(object, key.text());
  return undefined_attribute(object, key.text());
}

}  // namespace omnibus::jinja
