// Recursive descent from tokens to the tree; depth-limited, so that no source can overflow the stack.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ast.h"
#include "lexer.h"
#include "program.h"

namespace omnibus::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source);
  std::unique_ptr<const Program> run();

 private:
  class Depth;
  struct TupleRules {
    bool simplified = false;    // names and literals only (assignment targets)
    bool conditional = true;    // "a if b" may occur
    bool parentheses = false;   // () is a value
    bool namespaces = false;    // ns.attr may occur (set)
    const char* end_name = "";  // a name that ends the tuple ("in", "recursive")
  };

  // tokens
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& take();
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  std::string expect_name();
  void expect_keyword(std::string_view name);
  void expect_block_end();
  [[noreturn]] void fail_here(const std::string& message) const;
  static std::string describe(const Token& token);

  template <typename T>
  T* make(uint32_t line) {
    auto owned = std::make_unique<T>(line);
    T* raw = owned.get();
    program_->nodes_.push_back(std::move(owned));
    return raw;
  }
  Symbol symbol(const std::string& name);
  TextPtr literal_text(std::string_view text) const { return make_text(text, true, nullptr); }

  // statements (parser_statements.cc)
  Body parse_body(std::initializer_list<std::string_view> end_names);
  Body parse_block_body(std::initializer_list<std::string_view> end_names);
  const Node* parse_statement();
  const Node* parse_if();
  const Node* parse_for();
  const Node* parse_set();
  const Node* parse_macro();
  const Node* parse_call_block();
  const Node* parse_filter_block();
  const Node* parse_with();
  const Node* parse_generation();
  const Node* parse_print();
  const Node* parse_loop_control();
  void parse_signature(MacroNode& macro);
  const Node* parse_target(const TupleRules& rules);
  void check_target(const Node* target) const;
  Body parse_soft_body(std::initializer_list<std::string_view> end_names);

  // expressions (parser_expressions.cc)
  const Node* parse_expression(bool conditional = true);
  const Node* parse_tuple(const TupleRules& rules);
  bool at_tuple_end(const TupleRules& rules) const;
  const Node* parse_conditional();
  const Node* parse_logic(bool is_or);
  const Node* parse_not();
  const Node* parse_compare();
  const Node* parse_sum();
  const Node* parse_concat();
  const Node* parse_product();
  const Node* parse_power();
  const Node* parse_unary(bool with_filter);
  const Node* parse_primary(bool namespaces);
  const Node* parse_name(bool namespaces);
  const Node* parse_list();
  const Node* parse_dict();

  // behind a value (parser_postfix.cc)
  const Node* parse_postfix(const Node* node);
  const Node* parse_filters_and_tests(const Node* node);
  const Node* parse_subscript(const Node* node);
  const Node* parse_subscribed();
  ArgumentNodes parse_arguments();
  const Node* parse_call(const Node* callee);
  const Node* parse_filter_chain(const Node* input, bool inline_start);
  const Node* parse_test(const Node* input);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::unique_ptr<Program> program_;
  std::unordered_map<std::string, Symbol> symbol_ids_;
  std::vector<MacroNode*> macros_;  // that the current place is inside of
  int depth_ = 0;
  int soft_depth_ = 0;  // inside an if: an unknown filter is an error only when reached
  int loop_depth_ = 0;  // for break and continue
};

// Counts nesting for its lifetime.
class Parser::Depth {
 public:
  explicit Depth(Parser& parser);
  ~Depth() { --parser_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Parser& parser_;
};

}  // namespace omnibus::jinja
