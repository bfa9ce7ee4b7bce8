#include "interpreter.h"

#include <nlohmann/json.hpp>

#include "format.h"
#include "globals.h"
#include "json_value.h"
#include "methods.h"
#include "operators.h"

namespace omnibus::jinja {

Interpreter::Interpreter(const Program& program, const RenderOptions& options)
    : program_(program), options_(options), budget_(options.budget), heap_(budget_), output_(&budget_) {
  const auto& symbols = program_.symbols();
  for (Symbol i = 0; i < symbols.size(); ++i) {
    const std::string_view name = symbols[i]->view();
    if (name == "loop") loop_symbol_ = i;
    if (name == "varargs") varargs_symbol_ = i;
    if (name == "kwargs") kwargs_symbol_ = i;
    if (name == "caller") caller_symbol_ = i;
  }
}

// Only names that the template mentions are converted.
void Interpreter::load_variables(const nlohmann::ordered_json& variables) {
  auto globals = std::make_shared<Scope>(nullptr);
  scope_ = std::make_shared<Scope>(globals);
  const auto& symbols = program_.symbols();
  for (Symbol i = 0; i < symbols.size(); ++i) {
    const std::string_view name = symbols[i]->view();
    if (const FunctionBody body = find_global(name); body != nullptr)
      globals->set(i, heap_.make<FunctionObject>(global_name(name), body));
    if (name == "bos_token") globals->set(i, make_text(options_.bos_token, true, &budget_));
    if (name == "eos_token") globals->set(i, make_text(options_.eos_token, true, &budget_));
    if (name == "add_generation_prompt") globals->set(i, options_.add_generation_prompt);
    if (const auto found = variables.find(std::string(name)); found != variables.end())
      scope_->set(i, name == "messages" ? messages_from_json(*found, heap_) : value_from_json(*found, heap_));
  }
}

RenderedPrompt Interpreter::run(const nlohmann::ordered_json& variables) {
  try {
    load_variables(variables);
    exec(program_.body());
  } catch (const TemplateError& error) {
    if (error.kind() == TemplateError::Kind::kRaised || error.kind() == TemplateError::Kind::kVariables)
      throw;
    throw TemplateError(error.kind(), "line " + std::to_string(line_) + ": " + error.what());
  }
  RenderedPrompt prompt;
  prompt.text = output_.take_bytes();
  size_t begin = 0;
  for (const TrustRun& run : output_.take_runs()) {
    prompt.ranges.push_back({begin, run.end, run.trusted});
    begin = run.end;
  }
  return prompt;
}

RenderedPrompt run_program(const Program& program, const nlohmann::ordered_json& variables,
                           const RenderOptions& options) {
  return Interpreter(program, options).run(variables);
}

std::vector<Value> Interpreter::to_items(const Value& value) {
  std::vector<Value> items;
  const auto copy = [&](const std::vector<Value>& from) {
    budget_.bulk(from.size());
    items = from;
  };
  switch (value.type()) {
    case Type::kUndefined:
      return items;
    case Type::kList:
      copy(value.list()->items);
      return items;
    case Type::kDict:
      budget_.bulk(value.dict()->size());
      for (const auto& [key, unused] : value.dict()->entries()) items.push_back(key);
      return items;
    case Type::kText:
      return characters(*value.text(), budget_);
    case Type::kObject:
      break;
    default:
      fail(std::string("'") + type_name(value) + "' object is not iterable");
  }
  if (const RangeObject* range = as_range(value)) {
    budget_.bulk(range->length);
    for (size_t i = 0; i < range->length; ++i) items.push_back(range->at(i));
  } else if (const ViewObject* view = as_view(value)) {
    copy(view->items);
  } else if (IteratorObject* iterator = as_iterator(value)) {
    budget_.bulk(iterator->items.size());
    items.assign(iterator->items.begin() + static_cast<ptrdiff_t>(iterator->next), iterator->items.end());
    iterator->next = iterator->items.size();
  } else {
    fail(std::string("'") + type_name(value) + "' object is not iterable");
  }
  return items;
}

Value Interpreter::call(const Value& callee, const CallArgs& args) {
  budget_.step();
  if (callee.is_undefined()) fail_undefined(callee);
  if (callee.is_object()) {
    Object* object = callee.object();
    switch (object->kind()) {
      case Object::Kind::kFunction:
        return static_cast<FunctionObject*>(object)->body(*this, args);
      case Object::Kind::kMethod: {
        const auto* method = static_cast<MethodObject*>(object);
        return method->body(*this, method->self, args);
      }
      case Object::Kind::kMacro:
        return call_macro(*static_cast<MacroObject*>(object), args);
      case Object::Kind::kLoop:
        return call_loop(*static_cast<LoopObject*>(object), args);
      case Object::Kind::kJoiner: {
        auto* joiner = static_cast<JoinerObject*>(object);
        BoundArgs("joiner", args, {});
        if (joiner->used) return joiner->separator;
        joiner->used = true;
        return make_text("", true, &budget_);
      }
      default:
        break;
    }
  }
  fail(std::string("'") + type_name(callee) + "' object is not callable");
}

}  // namespace omnibus::jinja
