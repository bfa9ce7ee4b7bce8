#include <algorithm>

#include "format.h"
#include "interpreter.h"
#include "operators.h"

namespace omnibus::jinja {

Interpreter::Flow Interpreter::exec(const Body& body) {
  const NestGuard guard(budget_);
  for (const Node* node : body) {
    budget_.step();
    line_ = node->line;
    if (node->kind == NodeKind::kText) {
      out_->append(*static_cast<const TextNode*>(node)->text);
      continue;
    }
    if (const Flow flow = exec_statement(*node); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_statement(const Node& node) {
  switch (node.kind) {
    case NodeKind::kOutput:
      for (const Node* item : static_cast<const OutputNode&>(node).items)
        print_value(eval(*item), *out_, heap_);
      return Flow::kNext;
    case NodeKind::kIf:
      return exec_if(static_cast<const IfNode&>(node));
    case NodeKind::kFor: {
      const auto& loop = static_cast<const ForNode&>(node);
      const Value iterable = eval(*loop.iterable);
      return run_loop(loop, iterable, 0, scope_);
    }
    case NodeKind::kSet:
      exec_set(static_cast<const SetNode&>(node));
      return Flow::kNext;
    case NodeKind::kSetBlock:
      exec_set_block(static_cast<const SetBlockNode&>(node));
      return Flow::kNext;
    case NodeKind::kMacro: {
      const auto& macro = static_cast<const MacroNode&>(node);
      scope_->set(macro.symbol, heap_.make<MacroObject>(&macro, scope_));
      return Flow::kNext;
    }
    case NodeKind::kCallBlock:
      exec_call_block(static_cast<const CallBlockNode&>(node));
      return Flow::kNext;
    case NodeKind::kFilterBlock:
      exec_filter_block(static_cast<const FilterBlockNode&>(node));
      return Flow::kNext;
    case NodeKind::kScope:
      return exec_scope(static_cast<const ScopeNode&>(node));
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      fail("a value stands where a statement is needed");
  }
}

Interpreter::Flow Interpreter::exec_if(const IfNode& node) {
  for (const auto& [test, body] : node.branches)
    if (is_truthy(eval(*test))) return exec(body);
  return exec(node.otherwise);
}

Interpreter::Flow Interpreter::exec_scope(const ScopeNode& node) {
  auto inner = std::make_shared<Scope>(scope_);
  std::vector<Value> values;
  for (const auto& [target, value] : node.assignments) values.push_back(eval(*value));
  const ScopeChange change(*this, inner);
  for (size_t i = 0; i < values.size(); ++i) assign(*node.assignments[i].first, values[i]);
  return exec(node.body);
}

bool Interpreter::passes_loop_test(const ForNode& node, const Value& item,
                                   const std::shared_ptr<Scope>& outer) {
  const ScopeChange change(*this, std::make_shared<Scope>(outer));
  assign(*node.target, item);
  return is_truthy(eval(*node.test));
}

// The test of a filtered loop runs just before its item is needed, as in Jinja2, where it may depend on what
// earlier rounds did.
bool Interpreter::fill_loop(LoopObject& loop, size_t count) {
  while (loop.items.size() < count && loop.source_next < loop.source.size()) {
    budget_.step();
    const Value item = loop.source[loop.source_next++];
    if (loop.node->test == nullptr || passes_loop_test(*loop.node, item, loop.outer))
      loop.items.push_back(item);
  }
  return loop.items.size() >= count;
}

Interpreter::Flow Interpreter::run_loop(const ForNode& node, const Value& iterable, int32_t depth0,
                                        std::shared_ptr<Scope> outer) {
  // Only a template that says "loop" can keep the object.
  LoopObject local;
  const bool exposed = loop_symbol_ != kNoSymbol;
  LoopObject* loop = exposed ? heap_.make<LoopObject>() : &local;
  loop->node = &node;
  loop->outer = outer;
  loop->depth0 = depth0;
  loop->source = to_items(iterable);
  const size_t bytes = loop->source.size() * sizeof(Value);
  budget_.allocate(bytes);
  if (node.test == nullptr) {
    loop->items = std::move(loop->source);
    loop->source.clear();
  }
  std::shared_ptr<Scope> inner;
  size_t rounds = 0;
  for (; fill_loop(*loop, rounds + 1); ++rounds) {
    budget_.step();
    loop->index0 = rounds;
    // A macro or an inner loop may have kept the last round's scope.
    if (inner == nullptr || inner.use_count() > 1)
      inner = std::make_shared<Scope>(outer);
    else
      inner->clear();
    const ScopeChange change(*this, inner);
    if (exposed) inner->set(loop_symbol_, loop);
    const Value item = loop->items[rounds];
    assign(*node.target, item);
    if (exec(node.body) == Flow::kBreak) {
      ++rounds;
      break;
    }
  }
  if (!exposed) budget_.release(bytes);
  if (rounds > 0) return Flow::kNext;
  const ScopeChange change(*this, std::make_shared<Scope>(outer));
  return exec(node.otherwise);
}

void Interpreter::exec_set(const SetNode& node) {
  const Value value = eval(*node.value);
  line_ = node.line;
  assign(*node.target, value);
}

void Interpreter::assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::kName) {
    scope_->set(static_cast<const NameNode&>(target).symbol, value);
    return;
  }
  if (target.kind == NodeKind::kNamespaceTarget) {
    const auto& reference = static_cast<const NamespaceTargetNode&>(target);
    const Value* owner = scope_->find(reference.symbol);
    NamespaceObject* space = owner == nullptr ? nullptr : as_namespace(*owner);
    if (space == nullptr) fail("cannot assign attribute on non-namespace object");
    space->attributes->set(reference.attribute, value, budget_);
    return;
  }
  const auto& targets = static_cast<const SequenceNode&>(target).items;
  if (value.is_undefined() && !targets.empty())
    fail("not enough values to unpack (expected " + std::to_string(targets.size()) + ", got 0)");
  const std::vector<Value> items = to_items(value);
  if (items.size() > targets.size())
    fail("too many values to unpack (expected " + std::to_string(targets.size()) + ")");
  if (items.size() < targets.size())
    fail("not enough values to unpack (expected " + std::to_string(targets.size()) + ", got " +
         std::to_string(items.size()) + ")");
  for (size_t i = 0; i < items.size(); ++i) assign(*targets[i], items[i]);
}

TextPtr Interpreter::capture(const Body& body, std::shared_ptr<Scope> scope) {
  Capture captured(*this);
  const ScopeChange change(*this, std::move(scope));
  exec(body);
  return captured.text();
}

void Interpreter::exec_set_block(const SetBlockNode& node) {
  Value value = capture(node.body, std::make_shared<Scope>(scope_));
  if (node.filter != nullptr) {
    Value outer = std::exchange(block_input_, value);
    value = eval(*node.filter);
    block_input_ = std::move(outer);
  }
  assign(*node.target, value);
}

void Interpreter::exec_filter_block(const FilterBlockNode& node) {
  const Value value = capture(node.body, std::make_shared<Scope>(scope_));
  Value outer = std::exchange(block_input_, value);
  print_value(eval(*node.filter), *out_, heap_);
  block_input_ = std::move(outer);
}

void Interpreter::exec_call_block(const CallBlockNode& node) {
  const Value caller = heap_.make<MacroObject>(node.caller, scope_);
  print_value(eval_call(*node.call, &caller), *out_, heap_);
}

Value Interpreter::call_macro(const MacroObject& macro, const CallArgs& args) {
  const CallGuard guard(budget_);
  auto scope = std::make_shared<Scope>(macro.scope);
  bind_macro(*macro.node, args, *scope);
  const ScopeChange change(*this, scope);
  for (size_t i = args.positional.size(); i < macro.node->parameters.size(); ++i) {
    const MacroNode::Parameter& parameter = macro.node->parameters[i];
    const bool given = std::any_of(args.keyword.begin(), args.keyword.end(),
                                   [&](const auto& keyword) { return keyword.first == parameter.name; });
    if (given) continue;
    scope->set(parameter.symbol,
               parameter.fallback != nullptr
                   ? eval(*parameter.fallback)
                   : Value(Undefined{Undefined::Kind::kName, "", program_.symbols()[parameter.symbol]}));
  }
  return capture(macro.node->body, scope);
}

void Interpreter::bind_macro(const MacroNode& node, const CallArgs& args, Scope& scope) {
  const size_t positional = std::min(args.positional.size(), node.parameters.size());
  for (size_t i = 0; i < positional; ++i) scope.set(node.parameters[i].symbol, args.positional[i]);
  std::vector<bool> used(args.keyword.size(), false);
  for (size_t i = positional; i < node.parameters.size(); ++i)
    for (size_t k = 0; k < args.keyword.size(); ++k)
      if (args.keyword[k].first == node.parameters[i].name) {
        scope.set(node.parameters[i].symbol, args.keyword[k].second);
        used[k] = true;
      }
  bind_special(node, args, used, scope);
}

// caller, kwargs and varargs, in the order in which Jinja2 takes them.
void Interpreter::bind_special(const MacroNode& node, const CallArgs& args, std::vector<bool>& used,
                               Scope& scope) {
  const std::string name = node.name ? std::string(node.name->view()) : "caller";
  const bool explicit_caller = std::any_of(node.parameters.begin(), node.parameters.end(),
                                           [](const auto& parameter) { return parameter.name == "caller"; });
  if (node.uses_caller && !explicit_caller) {
    Value caller = Undefined{Undefined::Kind::kHint, "No caller defined", nullptr};
    for (size_t k = 0; k < args.keyword.size(); ++k)
      if (args.keyword[k].first == "caller") {
        caller = args.keyword[k].second;
        used[k] = true;
      }
    scope.set(caller_symbol_, caller);
  }
  if (node.uses_kwargs) {
    Dict* rest = heap_.make<Dict>();
    for (size_t k = 0; k < args.keyword.size(); ++k)
      if (!used[k])
        rest->set(make_text(args.keyword[k].first, true, &budget_), args.keyword[k].second, budget_);
    scope.set(kwargs_symbol_, rest);
  } else {
    for (size_t k = 0; k < args.keyword.size(); ++k)
      if (!used[k]) fail("macro '" + name + "' takes no keyword argument '" + args.keyword[k].first + "'");
  }
  const size_t count = node.parameters.size();
  if (node.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = count; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    scope.set(varargs_symbol_, heap_.list(std::move(rest), true));
  } else if (args.positional.size() > count) {
    fail("macro '" + name + "' takes not more than " + std::to_string(count) + " argument(s)");
  }
}

Value Interpreter::call_loop(LoopObject& loop, const CallArgs& args) {
  const BoundArgs bound("loop", args, {"iterable"}, 1);
  if (!loop.node->recursive) fail("The loop must have the 'recursive' marker to be called recursively.");
  const CallGuard guard(budget_);
  Capture captured(*this);
  const ScopeChange change(*this, loop.outer);
  run_loop(*loop.node, bound.at(0), loop.depth0 + 1, loop.outer);
  return captured.text();
}

}  // namespace omnibus::jinja
