// Expressions, in order of binding: conditional, or, and, not, comparison, + -, ~, * / // %, **, sign,
// values; what follows a value is in parser_postfix.cc.
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

}  // namespace omnibus::jinja
