// Template bodies and the statements in {% … %}.
#include <algorithm>

#include "parser.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

// Levels of nesting, expressions and statements together. Real templates stay below 60.
constexpr int kMaxDepth = 500;
// Real templates are below 20 KiB.
constexpr size_t kMaxSourceBytes = size_t{1} << 20;

constexpr std::string_view kForeignTags[] = {"include", "import",     "from",  "extends", "block",
                                             "do",      "autoescape", "trans", "debug"};

}  // namespace

Parser::Depth::Depth(Parser& parser) : parser_(parser) {
  if (parser_.depth_ >= kMaxDepth) parser_.fail_here("nested too deeply");
  ++parser_.depth_;
}

Parser::Parser(std::string_view source) : program_(new Program()) {
  if (source.size() > kMaxSourceBytes)
    fail_syntax(1, "the template is larger than " + std::to_string(kMaxSourceBytes) + " bytes");
  if (const size_t at = find_invalid_utf8(source); at != std::string_view::npos)
    fail_syntax(1 + static_cast<uint32_t>(
                        std::count(source.begin(), source.begin() + static_cast<ptrdiff_t>(at), '\n')),
                "the template is not valid UTF-8");
  tokens_ = tokenize(source);
}

std::unique_ptr<const Program> Parser::run() {
  program_->body_ = parse_body({});
  return std::move(program_);
}

std::unique_ptr<const Program> Program::compile(std::string_view source) { return Parser(source).run(); }

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_operator(std::string_view op) {
  if (!current().is_operator(op)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here("expected '" + std::string(op) + "', got " + describe(current()));
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::kName) fail_here("expected a name, got " + describe(current()));
  return take().text;
}

void Parser::expect_keyword(std::string_view name) {
  if (!skip_name(name)) fail_here("expected '" + std::string(name) + "', got " + describe(current()));
}

void Parser::expect_block_end() {
  if (current().kind != TokenKind::kBlockEnd)
    fail_here("expected end of statement block, got " + describe(current()));
  take();
}

void Parser::fail_here(const std::string& message) const { fail_syntax(current().line, message); }

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return "'" + token.text + "'";
  }
}

Symbol Parser::symbol(const std::string& name) {
  const auto [entry, added] = symbol_ids_.try_emplace(name, static_cast<Symbol>(program_->symbols_.size()));
  if (added) program_->symbols_.push_back(literal_text(name));
  return entry->second;
}

Body Parser::parse_body(std::initializer_list<std::string_view> end_names) {
  const Depth depth(*this);
  Body body;
  while (current().kind != TokenKind::kEnd) {
    const Token& token = current();
    if (token.kind == TokenKind::kData) {
      auto* node = make<TextNode>(token.line);
      node->text = literal_text(token.text);
      body.push_back(node);
      take();
    } else if (token.kind == TokenKind::kVariableBegin) {
      auto* node = make<OutputNode>(token.line);
      take();
      node->items.push_back(parse_tuple({}));
      if (current().kind != TokenKind::kVariableEnd)
        fail_here("expected end of print statement, got " + describe(current()));
      take();
      body.push_back(node);
    } else {
      take();  // {%: the lexer gives nothing else here
      for (const std::string_view name : end_names)
        if (current().is_name(name)) return body;
      body.push_back(parse_statement());
      expect_block_end();
    }
  }
  if (end_names.size() != 0) {
    std::string wanted;
    for (const std::string_view name : end_names)
      wanted += (wanted.empty() ? "'" : ", '") + std::string(name) + "'";
    fail_here("Unexpected end of template. Looking for: " + wanted);
  }
  return body;
}

// The rest of an opening tag, then its body; the end tag's name is the current token afterwards.
Body Parser::parse_block_body(std::initializer_list<std::string_view> end_names) {
  skip_operator(":");
  expect_block_end();
  return parse_body(end_names);
}

Body Parser::parse_soft_body(std::initializer_list<std::string_view> end_names) {
  ++soft_depth_;
  Body body = parse_block_body(end_names);
  --soft_depth_;
  return body;
}

const Node* Parser::parse_statement() {
  const Depth depth(*this);
  if (current().kind != TokenKind::kName) fail_here("tag name expected, got " + describe(current()));
  const std::string& tag = current().text;
  if (tag == "if") return parse_if();
  if (tag == "for") return parse_for();
  if (tag == "set") return parse_set();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call_block();
  if (tag == "filter") return parse_filter_block();
  if (tag == "with") return parse_with();
  if (tag == "generation") return parse_generation();
  if (tag == "print") return parse_print();
  if (tag == "break" || tag == "continue") return parse_loop_control();
  for (const std::string_view foreign : kForeignTags)
    if (tag == foreign) fail_here("the tag '" + tag + "' is not supported in chat templates");
  fail_here("Encountered unknown tag '" + tag + "'.");
}

const Node* Parser::parse_if() {
  auto* node = make<IfNode>(take().line);
  TupleRules rules;
  rules.conditional = false;
  while (true) {
    ++soft_depth_;
    const Node* test = parse_tuple(rules);
    --soft_depth_;
    node->branches.emplace_back(test, parse_soft_body({"elif", "else", "endif"}));
    if (skip_name("elif")) continue;
    if (skip_name("else")) node->otherwise = parse_soft_body({"endif"});
    take();
    return node;
  }
}

const Node* Parser::parse_for() {
  auto* node = make<ForNode>(take().line);
  TupleRules target;
  target.end_name = "in";
  ++loop_depth_;  // the target belongs to the loop: it cannot be named "loop"
  node->target = parse_target(target);
  --loop_depth_;
  expect_keyword("in");
  TupleRules rules;
  rules.conditional = false;
  rules.end_name = "recursive";
  node->iterable = parse_tuple(rules);
  if (skip_name("if")) node->test = parse_expression();
  node->recursive = skip_name("recursive");
  ++loop_depth_;
  node->body = parse_block_body({"endfor", "else"});
  --loop_depth_;
  if (skip_name("else")) node->otherwise = parse_block_body({"endfor"});
  take();
  return node;
}

const Node* Parser::parse_target(const TupleRules& given) {
  TupleRules rules = given;
  rules.simplified = true;
  const Node* target = parse_tuple(rules);
  check_target(target);
  return target;
}

void Parser::check_target(const Node* target) const {
  if (target->kind == NodeKind::kName) {
    const Symbol name = static_cast<const NameNode*>(target)->symbol;
    if (loop_depth_ > 0 && program_->symbols_[name]->view() == "loop")
      fail_syntax(target->line, "Can't assign to special loop variable in for-loop");
    return;
  }
  if (target->kind == NodeKind::kNamespaceTarget) return;
  if (target->kind != NodeKind::kSequence) fail_syntax(target->line, "can't assign to this expression");
  const auto& items = static_cast<const SequenceNode*>(target)->items;
  for (const Node* item : items) check_target(item);
}

const Node* Parser::parse_set() {
  const uint32_t line = take().line;
  TupleRules rules;
  rules.namespaces = true;
  const Node* target = parse_target(rules);
  if (skip_operator("=")) {
    auto* node = make<SetNode>(line);
    node->target = target;
    node->value = parse_tuple({});
    return node;
  }
  auto* node = make<SetBlockNode>(line);
  node->target = target;
  if (current().is_operator("|")) node->filter = parse_filter_chain(nullptr, false);
  node->body = parse_block_body({"endset"});
  take();
  return node;
}

void Parser::parse_signature(MacroNode& macro) {
  expect_operator("(");
  bool defaults = false;
  while (!current().is_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    MacroNode::Parameter parameter;
    parameter.name = expect_name();
    parameter.symbol = symbol(parameter.name);
    for (const auto& other : macro.parameters)
      if (other.name == parameter.name) fail_here("duplicate parameter '" + parameter.name + "'");
    if (skip_operator("=")) {
      parameter.fallback = parse_expression();
      defaults = true;
    } else if (defaults) {
      fail_here("non-default argument follows default argument");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  expect_operator(")");
}

const Node* Parser::parse_macro() {
  auto* node = make<MacroNode>(take().line);
  const std::string name = expect_name();
  node->name = literal_text(name);
  node->symbol = symbol(name);
  macros_.push_back(node);
  const int loops = std::exchange(loop_depth_, 0);
  parse_signature(*node);
  node->body = parse_block_body({"endmacro"});
  take();
  loop_depth_ = loops;
  macros_.pop_back();
  return node;
}

const Node* Parser::parse_call_block() {
  auto* node = make<CallBlockNode>(take().line);
  auto* caller = make<MacroNode>(node->line);
  if (current().is_operator("(")) parse_signature(*caller);
  const Node* call = parse_expression();
  if (call->kind != NodeKind::kCall) fail_syntax(node->line, "expected call");
  node->call = static_cast<const CallNode*>(call);
  macros_.push_back(caller);
  const int loops = std::exchange(loop_depth_, 0);
  caller->body = parse_block_body({"endcall"});
  take();
  loop_depth_ = loops;
  macros_.pop_back();
  node->caller = caller;
  return node;
}

const Node* Parser::parse_filter_block() {
  auto* node = make<FilterBlockNode>(take().line);
  node->filter = parse_filter_chain(nullptr, true);
  node->body = parse_block_body({"endfilter"});
  take();
  return node;
}

const Node* Parser::parse_with() {
  auto* node = make<ScopeNode>(take().line);
  while (current().kind != TokenKind::kBlockEnd) {
    if (!node->assignments.empty()) expect_operator(",");
    TupleRules rules;
    rules.simplified = true;
    const Node* target = parse_primary(false);
    check_target(target);
    expect_operator("=");
    node->assignments.emplace_back(target, parse_expression());
  }
  node->body = parse_block_body({"endwith"});
  take();
  return node;
}

// Marks the assistant's words for training; renders as its body.
const Node* Parser::parse_generation() {
  auto* node = make<ScopeNode>(take().line);
  const int loops = std::exchange(loop_depth_, 0);
  node->body = parse_block_body({"endgeneration"});
  take();
  loop_depth_ = loops;
  return node;
}

const Node* Parser::parse_print() {
  auto* node = make<OutputNode>(take().line);
  while (current().kind != TokenKind::kBlockEnd) {
    if (!node->items.empty()) expect_operator(",");
    node->items.push_back(parse_expression());
  }
  return node;
}

const Node* Parser::parse_loop_control() {
  if (loop_depth_ == 0) fail_here("'" + current().text + "' outside of a loop");
  const Token token = take();
  if (token.text == "break") return make<BreakNode>(token.line);
  return make<ContinueNode>(token.line);
}

}  // namespace omnibus::jinja
