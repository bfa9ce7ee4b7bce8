#include <optional>

#include "format.h"
#include "interpreter.h"
#include "methods.h"
#include "operators.h"

namespace omnibus::jinja {

Value Interpreter::eval(const Node& node) {
  // Leaves are free: what stands around them pays. Long conversations in templates that look back at every
  // message would else need more steps than a budget can allow.
  if (node.kind == NodeKind::kLiteral) return static_cast<const LiteralNode&>(node).value;
  if (node.kind == NodeKind::kName) return eval_name(static_cast<const NameNode&>(node));
  budget_.step();
  const NestGuard guard(budget_);
  switch (node.kind) {
    case NodeKind::kSequence:
      return eval_sequence(static_cast<const SequenceNode&>(node));
    case NodeKind::kDict:
      return eval_dict(static_cast<const DictNode&>(node));
    case NodeKind::kUnary:
      return eval_unary(static_cast<const UnaryNode&>(node));
    case NodeKind::kBinary:
      return eval_binary(static_cast<const BinaryNode&>(node));
    case NodeKind::kConcat:
      return eval_concat(static_cast<const ConcatNode&>(node));
    case NodeKind::kLogic:
      return eval_logic(static_cast<const LogicNode&>(node));
    case NodeKind::kCompare:
      return eval_compare(static_cast<const CompareNode&>(node));
    case NodeKind::kConditional:
      return eval_conditional(static_cast<const ConditionalNode&>(node));
    case NodeKind::kAttribute: {
      const auto& attribute = static_cast<const AttributeNode&>(node);
      const Value object = eval(*attribute.object);
      line_ = node.line;
      return get_attribute(object, attribute.name);
    }
    case NodeKind::kItem:
      return eval_item(static_cast<const ItemNode&>(node));
    case NodeKind::kCall:
      return eval_call(static_cast<const CallNode&>(node), nullptr);
    case NodeKind::kFilter:
      return eval_filter(static_cast<const FilterNode&>(node));
    case NodeKind::kTest:
      return eval_test(static_cast<const TestNode&>(node));
    default:
      fail("a statement stands where a value is needed");
  }
}

Value Interpreter::eval_name(const NameNode& node) {
  if (const Value* value = scope_->find(node.symbol)) return *value;
  return Undefined{Undefined::Kind::kName, "", program_.symbols()[node.symbol]};
}

Value Interpreter::eval_sequence(const SequenceNode& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const Node* item : node.items) items.push_back(eval(*item));
  return heap_.list(std::move(items), node.tuple);
}

Value Interpreter::eval_dict(const DictNode& node) {
  Dict* dict = heap_.make<Dict>();
  for (const auto& [key, value] : node.pairs) {
    const Value k = eval(*key);
    dict->set(k, eval(*value), budget_);
  }
  return dict;
}

Value Interpreter::eval_unary(const UnaryNode& node) {
  const Value operand = eval(*node.operand);
  switch (node.op) {
    case UnaryOp::kNot:
      return !is_truthy(operand);
    case UnaryOp::kNegate:
      return negate(operand);
    case UnaryOp::kPositive:
      return positive(operand);
  }
  return {};
}

// Long chains (a + b + c …) lean to the left; walking them in a loop keeps the stack flat and joins texts
// without copying the beginning again for every part.
Value Interpreter::eval_binary(const BinaryNode& node) {
  std::vector<const BinaryNode*> chain;
  const Node* first = &node;
  while (first->kind == NodeKind::kBinary) {
    chain.push_back(static_cast<const BinaryNode*>(first));
    first = chain.back()->left;
  }
  Value value = eval(*first);
  std::optional<TextBuilder> joined;
  for (size_t i = chain.size(); i-- > 0;) {
    const Value right = eval(*chain[i]->right);
    line_ = chain[i]->line;
    const bool texts = chain[i]->op == BinaryOp::kAdd && right.is_text() && !right.text()->markup() &&
                       (joined || (value.is_text() && !value.text()->markup()));
    if (texts) {
      if (!joined) joined.emplace(&budget_).append(*value.text());
      joined->append(*right.text());
      continue;
    }
    if (joined) {
      value = joined->build();
      joined.reset();
    }
    value = binary(chain[i]->op, value, right, heap_);
  }
  return joined ? Value(joined->build()) : value;
}

Value Interpreter::eval_concat(const ConcatNode& node) {
  TextBuilder out(&budget_);
  for (const Node* item : node.items) print_value(eval(*item), out, heap_);
  return out.build();
}

Value Interpreter::eval_logic(const LogicNode& node) {
  Value value;
  for (const Node* item : node.items) {
    value = eval(*item);
    if (is_truthy(value) == node.is_or) return value;
  }
  return value;
}

Value Interpreter::eval_compare(const CompareNode& node) {
  Value left = eval(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = eval(*operand);
    line_ = node.line;
    if (!compare(op, left, right, heap_)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::eval_conditional(const ConditionalNode& node) {
  if (is_truthy(eval(*node.test))) return eval(*node.then);
  if (node.otherwise != nullptr) return eval(*node.otherwise);
  return Undefined{Undefined::Kind::kHint,
                   "the inline if-expression evaluated to false and no else section was defined.", nullptr};
}

Value Interpreter::eval_item(const ItemNode& node) {
  const Value object = eval(*node.object);
  if (node.key->kind == NodeKind::kSlice) return eval_slice(object, static_cast<const SliceNode&>(*node.key));
  const Value key = eval(*node.key);
  line_ = node.line;
  return get_item(object, key);
}

Value Interpreter::eval_slice(const Value& object, const SliceNode& node) {
  SliceBounds bounds;
  bool usable = true;
  const auto part = [&](const Node* from, std::optional<Integer>* to) {
    if (from == nullptr) return;
    const Value value = eval(*from);
    if (value.is_integral())
      *to = value.integer();
    else if (!value.is_none())
      usable = false;
  };
  part(node.start, &bounds.start);
  part(node.stop, &bounds.stop);
  part(node.step, &bounds.step);
  line_ = node.line;
  if (object.is_undefined()) fail_undefined(object);
  if (!usable) fail("slice indices must be integers or None");
  return slice_value(object, bounds, heap_);
}

CallArgs Interpreter::eval_arguments(const ArgumentNodes& nodes) {
  CallArgs args;
  args.positional.reserve(nodes.positional.size());
  for (const Node* node : nodes.positional) args.positional.push_back(eval(*node));
  for (const auto& [name, node] : nodes.keyword) args.keyword.emplace_back(name, eval(*node));
  if (nodes.star != nullptr) {
    const Value star = eval(*nodes.star);
    for (Value& item : to_items(star)) args.positional.push_back(std::move(item));
  }
  if (nodes.double_star != nullptr) {
    const Value mapping = eval(*nodes.double_star);
    if (mapping.is_undefined()) fail_undefined(mapping);
    if (!mapping.is_dict())
      fail(std::string("argument after ** must be a mapping, not ") + type_name(mapping));
    for (const auto& [key, value] : mapping.dict()->entries()) {
      budget_.step();
      if (!key.is_text()) fail("keywords must be strings");
      for (const auto& [name, unused] : args.keyword)
        if (name == key.view()) fail("got multiple values for keyword argument '" + name + "'");
      args.keyword.emplace_back(std::string(key.view()), value);
    }
  }
  return args;
}

Value Interpreter::eval_call(const CallNode& node, const Value* caller) {
  Value callee, self;
  MethodBody method = nullptr;
  if (node.callee->kind == NodeKind::kAttribute) {
    // A method of a plain value is called without making an object of it first.
    const auto& attribute = static_cast<const AttributeNode&>(*node.callee);
    self = eval(*attribute.object);
    line_ = node.line;
    method = find_method(self, attribute.name->view()).body;
    if (method == nullptr) callee = get_attribute(self, attribute.name);
  } else {
    callee = eval(*node.callee);
  }
  CallArgs args = eval_arguments(node.arguments);
  if (caller != nullptr) args.keyword.emplace_back("caller", *caller);
  line_ = node.line;
  budget_.step();
  return method != nullptr ? method(*this, self, args) : call(callee, args);
}

Value Interpreter::eval_filter(const FilterNode& node) {
  if (node.body == nullptr) fail("No filter named '" + node.name + "' found.");
  const Value input = node.input == nullptr ? block_input_ : eval(*node.input);
  const CallArgs args = eval_arguments(node.arguments);
  line_ = node.line;
  return node.body(*this, input, args);
}

Value Interpreter::eval_test(const TestNode& node) {
  if (node.body == nullptr) fail("No test named '" + node.name + "' found.");
  const Value input = eval(*node.input);
  const CallArgs args = eval_arguments(node.arguments);
  line_ = node.line;
  return node.body(*this, input, args);
}

}  // namespace omnibus::jinja
