// Expressions, in order of binding: conditional, or, and, not, comparison, + -, ~, * / // %, **, sign,
// postfix, filters and tests.
#include "parser.h"

namespace omnibus::jinja {

const Node* Parser::parse_expression(bool conditional) {
  const Depth depth(*this);
  return conditional ? parse_conditional() : parse_logic(true);
}

bool Parser::at_tuple_end(const TupleRules& rules) const {
  const Token& token = current();
  return token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd ||
         token.is_operator(")") || (*rules.end_name != 0 && token.is_name(rules.end_name));
}

const Node* Parser::parse_tuple(const TupleRules& rules) {
  const Depth depth(*this);
  const uint32_t line = current().line;
  Body items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_operator(",");
    if (at_tuple_end(rules)) break;
    items.push_back(rules.simplified ? parse_primary(rules.namespaces) : parse_expression(rules.conditional));
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!rules.parentheses) fail_here("Expected an expression, got " + describe(current()));
  }
  auto* node = make<SequenceNode>(line);
  node->tuple = true;
  node->items = std::move(items);
  return node;
}

const Node* Parser::parse_conditional() {
  const Depth depth(*this);
  const Node* result = parse_logic(true);
  while (current().is_name("if")) {
    auto* node = make<ConditionalNode>(current().line);
    take();
    node->then = result;
    ++soft_depth_;
    node->test = parse_logic(true);
    if (skip_name("else")) node->otherwise = parse_conditional();
    --soft_depth_;
    result = node;
  }
  return result;
}

const Node* Parser::parse_logic(bool is_or) {
  const uint32_t line = current().line;
  const Node* first = is_or ? parse_logic(false) : parse_not();
  const char* word = is_or ? "or" : "and";
  if (!current().is_name(word)) return first;
  auto* node = make<LogicNode>(line);
  node->is_or = is_or;
  node->items.push_back(first);
  while (skip_name(word)) node->items.push_back(is_or ? parse_logic(false) : parse_not());
  return node;
}

const Node* Parser::parse_not() {
  const Depth depth(*this);
  if (!current().is_name("not")) return parse_compare();
  auto* node = make<UnaryNode>(current().line);
  take();
  node->op = UnaryOp::kNot;
  node->operand = parse_not();
  return node;
}

const Node* Parser::parse_compare() {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  const uint32_t line = current().line;
  const Node* first = parse_sum();
  CompareNode* node = nullptr;
  while (true) {
    CompareOp op = CompareOp::kEq;
    bool found = false;
    if (current().is_name("in")) {
      op = CompareOp::kIn;
      found = true;
      take();
    } else if (current().is_name("not") && look().is_name("in")) {
      op = CompareOp::kNotIn;
      found = true;
      take();
      take();
    } else if (current().kind == TokenKind::kOperator) {
      for (const auto& [text, candidate] : kOps)
        if (current().text == text) {
          op = candidate;
          found = true;
        }
      if (found) take();
    }
    if (!found) return node != nullptr ? node : first;
    if (node == nullptr) {
      node = make<CompareNode>(line);
      node->first = first;
    }
    node->rest.emplace_back(op, parse_sum());
  }
}

const Node* Parser::parse_sum() {
  const Node* left = parse_concat();
  while (current().is_operator("+") || current().is_operator("-")) {
    auto* node = make<BinaryNode>(current().line);
    node->op = take().text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
    node->left = left;
    node->right = parse_concat();
    left = node;
  }
  return left;
}

const Node* Parser::parse_concat() {
  const uint32_t line = current().line;
  const Node* first = parse_product();
  if (!current().is_operator("~")) return first;
  auto* node = make<ConcatNode>(line);
  node->items.push_back(first);
  while (skip_operator("~")) node->items.push_back(parse_product());
  return node;
}

const Node* Parser::parse_product() {
  const Node* left = parse_power();
  while (current().kind == TokenKind::kOperator) {
    const std::string& op = current().text;
    if (op != "*" && op != "/" && op != "//" && op != "%") break;
    auto* node = make<BinaryNode>(current().line);
    node->op = op == "*" ? BinaryOp::kMul
                         : (op == "/" ? BinaryOp::kDiv : (op == "//" ? BinaryOp::kFloorDiv : BinaryOp::kMod));
    take();
    node->left = left;
    node->right = parse_power();
    left = node;
  }
  return left;
}

const Node* Parser::parse_power() {
  const Node* left = parse_unary(true);
  while (current().is_operator("**")) {
    auto* node = make<BinaryNode>(current().line);
    take();
    node->op = BinaryOp::kPow;
    node->left = left;
    node->right = parse_unary(true);
    left = node;
  }
  return left;
}

const Node* Parser::parse_unary(bool with_filter) {
  const Depth depth(*this);
  const Node* node = nullptr;
  if (current().is_operator("-") || current().is_operator("+")) {
    auto* sign = make<UnaryNode>(current().line);
    sign->op = take().text == "-" ? UnaryOp::kNegate : UnaryOp::kPositive;
    sign->operand = parse_unary(false);
    node = sign;
  } else {
    node = parse_primary(false);
  }
  node = parse_postfix(node);
  return with_filter ? parse_filters_and_tests(node) : node;
}

const Node* Parser::parse_name(bool namespaces) {
  const Token token = take();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
      name == "None") {
    auto* node = make<LiteralNode>(token.line);
    if (name[0] == 'n' || name[0] == 'N')
      node->value = None{};
    else
      node->value = name[0] == 't' || name[0] == 'T';
    return node;
  }
  if (namespaces && skip_operator(".")) {
    auto* node = make<NamespaceTargetNode>(token.line);
    node->symbol = symbol(name);
    node->attribute = literal_text(expect_name());
    return node;
  }
  for (MacroNode* macro : macros_) {
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_caller |= name == "caller";
  }
  auto* node = make<NameNode>(token.line);
  node->symbol = symbol(name);
  return node;
}

const Node* Parser::parse_primary(bool namespaces) {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name(namespaces);
    case TokenKind::kString: {
      auto* node = make<LiteralNode>(token.line);
      std::string text;
      while (current().kind == TokenKind::kString) text += take().text;
      node->value = literal_text(text);
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      auto* node = make<LiteralNode>(token.line);
      node->value = take().number;
      return node;
    }
    default:
      break;
  }
  if (token.is_operator("(")) {
    take();
    TupleRules rules;
    rules.parentheses = true;
    const Node* node = parse_tuple(rules);
    expect_operator(")");
    return node;
  }
  if (token.is_operator("[")) return parse_list();
  if (token.is_operator("{")) return parse_dict();
  fail_here("unexpected " + describe(token));
}

const Node* Parser::parse_list() {
  auto* node = make<SequenceNode>(take().line);
  while (!current().is_operator("]")) {
    if (!node->items.empty()) expect_operator(",");
    if (current().is_operator("]")) break;
    node->items.push_back(parse_expression());
  }
  expect_operator("]");
  return node;
}

const Node* Parser::parse_dict() {
  auto* node = make<DictNode>(take().line);
  while (!current().is_operator("}")) {
    if (!node->pairs.empty()) expect_operator(",");
    if (current().is_operator("}")) break;
    const Node* key = parse_expression();
    expect_operator(":");
    node->pairs.emplace_back(key, parse_expression());
  }
  expect_operator("}");
  return node;
}

const Node* Parser::parse_postfix(const Node* node) {
  while (true) {
    if (current().is_operator(".") || current().is_operator("["))
      node = parse_subscript(node);
    else if (current().is_operator("("))
      node = parse_call(node);
    else
      return node;
  }
}

const Node* Parser::parse_filters_and_tests(const Node* node) {
  while (true) {
    if (current().is_operator("|"))
      node = parse_filter_chain(node, false);
    else if (current().is_name("is"))
      node = parse_test(node);
    else if (current().is_operator("("))
      node = parse_call(node);
    else
      return node;
  }
}

const Node* Parser::parse_subscript(const Node* object) {
  const Token token = take();
  if (token.text == ".") {
    const Token name = take();
    if (name.kind == TokenKind::kName) {
      auto* node = make<AttributeNode>(token.line);
      node->object = object;
      node->name = literal_text(name.text);
      return node;
    }
    if (name.kind != TokenKind::kInteger) fail_syntax(name.line, "expected name or number");
    auto* node = make<ItemNode>(token.line);
    auto* key = make<LiteralNode>(token.line);
    key->value = name.number;
    node->object = object;
    node->key = key;
    return node;
  }
  auto* node = make<ItemNode>(token.line);
  node->object = object;
  Body keys;
  while (!current().is_operator("]")) {
    if (!keys.empty()) expect_operator(",");
    keys.push_back(parse_subscribed());
  }
  expect_operator("]");
  if (keys.size() == 1) {
    node->key = keys[0];
    return node;
  }
  auto* tuple = make<SequenceNode>(token.line);
  tuple->tuple = true;
  for (const Node* key : keys)
    if (key->kind == NodeKind::kSlice) fail_syntax(token.line, "a slice cannot be part of a tuple");
  tuple->items = std::move(keys);
  node->key = tuple;
  return node;
}

const Node* Parser::parse_subscribed() {
  const uint32_t line = current().line;
  const Node* start = nullptr;
  if (!current().is_operator(":")) {
    start = parse_expression();
    if (!current().is_operator(":")) return start;
  }
  take();
  auto* node = make<SliceNode>(line);
  node->start = start;
  const auto at_end = [&] { return current().is_operator("]") || current().is_operator(","); };
  if (!current().is_operator(":") && !at_end()) node->stop = parse_expression();
  if (skip_operator(":") && !at_end()) node->step = parse_expression();
  return node;
}

ArgumentNodes Parser::parse_arguments() {
  const uint32_t line = current().line;
  expect_operator("(");
  ArgumentNodes out;
  bool comma = false;
  const auto ensure = [&](bool ok) {
    if (!ok) fail_syntax(line, "invalid syntax for function call expression");
  };
  while (!current().is_operator(")")) {
    if (comma) {
      expect_operator(",");
      if (current().is_operator(")")) break;
    }
    comma = true;
    if (skip_operator("*")) {
      ensure(out.star == nullptr && out.double_star == nullptr);
      out.star = parse_expression();
    } else if (skip_operator("**")) {
      ensure(out.double_star == nullptr);
      out.double_star = parse_expression();
    } else if (current().kind == TokenKind::kName && look().is_operator("=")) {
      ensure(out.double_star == nullptr);
      std::string name = take().text;
      take();
      for (const auto& [other, unused] : out.keyword) ensure(other != name);
      out.keyword.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(out.star == nullptr && out.double_star == nullptr && out.keyword.empty());
      out.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  return out;
}

const Node* Parser::parse_call(const Node* callee) {
  auto* node = make<CallNode>(current().line);
  node->callee = callee;
  node->arguments = parse_arguments();
  return node;
}

const Node* Parser::parse_filter_chain(const Node* input, bool inline_start) {
  while (inline_start || current().is_operator("|")) {
    if (!inline_start) take();
    inline_start = false;
    auto* node = make<FilterNode>(current().line);
    node->name = expect_name();
    while (skip_operator(".")) node->name += "." + expect_name();
    node->input = input;
    node->body = find_filter(node->name);
    if (node->body == nullptr && soft_depth_ == 0)
      fail_syntax(node->line, "No filter named '" + node->name + "'.");
    if (current().is_operator("(")) node->arguments = parse_arguments();
    input = node;
  }
  return input;
}

const Node* Parser::parse_test(const Node* input) {
  const uint32_t line = take().line;
  const bool negated = skip_name("not");
  auto* node = make<TestNode>(line);
  node->name = expect_name();
  while (skip_operator(".")) node->name += "." + expect_name();
  node->input = input;
  node->body = find_test(node->name);
  if (node->body == nullptr && soft_depth_ == 0) fail_syntax(line, "No test named '" + node->name + "'.");
  const Token& next = current();
  const bool argument = next.kind == TokenKind::kName || next.kind == TokenKind::kString ||
                        next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat ||
                        next.is_operator("[") || next.is_operator("{");
  if (next.is_operator("(")) {
    node->arguments = parse_arguments();
  } else if (argument && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) fail_here("You cannot chain multiple tests with is");
    const Depth depth(*this);
    node->arguments.positional.push_back(parse_postfix(parse_primary(false)));
  }
  if (!negated) return node;
  auto* inverse = make<UnaryNode>(line);
  inverse->op = UnaryOp::kNot;
  inverse->operand = node;
  return inverse;
}

}  // namespace omnibus::jinja
