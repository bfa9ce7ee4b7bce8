// What follows a value: subscripts, calls, filters and tests.
#include <utility>

#include "parser.h"

namespace omnibus::jinja {

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
