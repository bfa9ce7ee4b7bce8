// One render: walks the tree, within the budget. Used by one thread, once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ast.h"
#include "budget.h"
#include "program.h"
#include "scope.h"

namespace omnibus::jinja {

class Interpreter {
 public:
  Interpreter(const Program& program, const RenderOptions& options);

  // Throws TemplateError with the line.
  RenderedPrompt run(const nlohmann::ordered_json& variables);

  // For filters, tests, methods and functions.
  Budget& budget() { return budget_; }
  Heap& heap() { return heap_; }
  const RenderOptions& options() const { return options_; }
  // x.name and x[key], as Jinja's sandbox resolves them; undefined when absent.
  Value get_attribute(const Value& object, const TextPtr& name);
  Value get_item(const Value& object, const Value& key);
  Value call(const Value& callee, const CallArgs& args);
  // list(value); a generator is used up.
  std::vector<Value> to_items(const Value& value);
  // Fetches items of a filtered loop until `count` are known; false when there are fewer.
  bool fill_loop(LoopObject& loop, size_t count);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Capture;
  class ScopeChange;

  // statements (interpreter_statements.cc)
  Flow exec(const Body& body);
  Flow exec_statement(const Node& node);
  Flow exec_if(const IfNode& node);
  Flow exec_scope(const ScopeNode& node);
  Flow run_loop(const ForNode& node, const Value& iterable, int32_t depth0, std::shared_ptr<Scope> outer);
  bool passes_loop_test(const ForNode& node, const Value& item, const std::shared_ptr<Scope>& outer);
  void exec_set(const SetNode& node);
  void exec_set_block(const SetBlockNode& node);
  void exec_filter_block(const FilterBlockNode& node);
  void exec_call_block(const CallBlockNode& node);
  void assign(const Node& target, const Value& value);
  TextPtr capture(const Body& body, std::shared_ptr<Scope> scope);
  Value call_macro(const MacroObject& macro, const CallArgs& args);
  void bind_macro(const MacroNode& node, const CallArgs& args, Scope& scope);
  void bind_special(const MacroNode& node, const CallArgs& args, std::vector<bool>& used, Scope& scope);
  Value call_loop(LoopObject& loop, const CallArgs& args);

  // expressions (interpreter_expressions.cc)
  Value eval(const Node& node);
  Value eval_name(const NameNode& node);
  Value eval_sequence(const SequenceNode& node);
  Value eval_dict(const DictNode& node);
  Value eval_unary(const UnaryNode& node);
  Value eval_binary(const BinaryNode& node);
  Value eval_concat(const ConcatNode& node);
  Value eval_logic(const LogicNode& node);
  Value eval_compare(const CompareNode& node);
  Value eval_conditional(const ConditionalNode& node);
  Value eval_item(const ItemNode& node);
  Value eval_slice(const Value& object, const SliceNode& node);
  Value eval_call(const CallNode& node, const Value* caller);
  Value eval_filter(const FilterNode& node);
  Value eval_test(const TestNode& node);
  CallArgs eval_arguments(const ArgumentNodes& nodes);

  // attributes (attributes.cc)
  Value object_attribute(const Value& object, std::string_view name, bool* found);
  Value loop_attribute(LoopObject& loop, const Value& self, std::string_view name, bool* found);

  void load_variables(const nlohmann::ordered_json& variables);

  const Program& program_;
  const RenderOptions& options_;
  Budget budget_;
  Heap heap_;
  TextBuilder output_;
  TextBuilder* out_ = &output_;
  std::shared_ptr<Scope> scope_;
  Value block_input_;  // what a filter without input of its own works on
  uint32_t line_ = 1;
  static constexpr Symbol kNoSymbol = ~Symbol{0};
  Symbol loop_symbol_ = kNoSymbol, varargs_symbol_ = kNoSymbol, kwargs_symbol_ = kNoSymbol,
         caller_symbol_ = kNoSymbol;
};

// Redirects output into a text for its lifetime.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(interpreter.out_), builder_(&interpreter.budget_) {
    interpreter_.out_ = &builder_;
  }
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  TextPtr text() { return builder_.build(); }

 private:
  Interpreter& interpreter_;
  TextBuilder* const outer_;
  TextBuilder builder_;
};

// Makes `scope` the current one for its lifetime.
class Interpreter::ScopeChange {
 public:
  ScopeChange(Interpreter& interpreter, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), outer_(std::move(interpreter.scope_)) {
    interpreter_.scope_ = std::move(scope);
  }
  ~ScopeChange() { interpreter_.scope_ = std::move(outer_); }
  ScopeChange(const ScopeChange&) = delete;
  ScopeChange& operator=(const ScopeChange&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

}  // namespace omnibus::jinja
