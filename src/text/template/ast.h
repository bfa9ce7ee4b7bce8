// The syntax tree. Nodes belong to the Program's node list (never to each other), so that long chains need no
// recursion to be destroyed. Immutable after parsing; shared by all renders.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "filters.h"
#include "operators.h"
#include "value.h"

namespace omnibus::jinja {

// Index of a variable name in Program::symbols.
using Symbol = uint32_t;

enum class NodeKind : uint8_t {
  // expressions
  kLiteral,
  kName,
  kSequence,
  kDict,
  kUnary,
  kBinary,
  kConcat,
  kLogic,
  kCompare,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  // statements
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kScope,
  kBreak,
  kContinue,
  // assignment target of kSet only
  kNamespaceTarget,
};

struct Node {
  Node(NodeKind kind_in, uint32_t line_in) : kind(kind_in), line(line_in) {}
  virtual ~Node() = default;
  const NodeKind kind;
  const uint32_t line;
};
using Body = std::vector<const Node*>;

template <NodeKind K>
struct NodeOf : Node {
  static constexpr NodeKind kKind = K;
  explicit NodeOf(uint32_t line_in) : Node(K, line_in) {}
};

struct LiteralNode : NodeOf<NodeKind::kLiteral> {
  using NodeOf::NodeOf;
  Value value;
};
struct NameNode : NodeOf<NodeKind::kName> {
  using NodeOf::NodeOf;
  Symbol symbol = 0;
};
struct SequenceNode : NodeOf<NodeKind::kSequence> {
  using NodeOf::NodeOf;
  bool tuple = false;
  Body items;
};
struct DictNode : NodeOf<NodeKind::kDict> {
  using NodeOf::NodeOf;
  std::vector<std::pair<const Node*, const Node*>> pairs;
};
enum class UnaryOp : uint8_t { kNot, kNegate, kPositive };
struct UnaryNode : NodeOf<NodeKind::kUnary> {
  using NodeOf::NodeOf;
  UnaryOp op = UnaryOp::kNot;
  const Node* operand = nullptr;
};
struct BinaryNode : NodeOf<NodeKind::kBinary> {
  using NodeOf::NodeOf;
  BinaryOp op = BinaryOp::kAdd;
  const Node* left = nullptr;
  const Node* right = nullptr;
};
struct ConcatNode : NodeOf<NodeKind::kConcat> {  // ~
  using NodeOf::NodeOf;
  Body items;
};
struct LogicNode : NodeOf<NodeKind::kLogic> {  // a and b and c, a or b or c
  using NodeOf::NodeOf;
  bool is_or = false;
  Body items;
};
struct CompareNode : NodeOf<NodeKind::kCompare> {
  using NodeOf::NodeOf;
  const Node* first = nullptr;
  std::vector<std::pair<CompareOp, const Node*>> rest;
};
struct ConditionalNode : NodeOf<NodeKind::kConditional> {
  using NodeOf::NodeOf;
  const Node* test = nullptr;
  const Node* then = nullptr;
  const Node* otherwise = nullptr;  // may be null
};
struct AttributeNode : NodeOf<NodeKind::kAttribute> {
  using NodeOf::NodeOf;
  const Node* object = nullptr;
  TextPtr name;
};
struct ItemNode : NodeOf<NodeKind::kItem> {
  using NodeOf::NodeOf;
  const Node* object = nullptr;
  const Node* key = nullptr;  // a kSlice for a[b:c]
};
struct SliceNode : NodeOf<NodeKind::kSlice> {
  using NodeOf::NodeOf;
  const Node* start = nullptr;  // each may be null
  const Node* stop = nullptr;
  const Node* step = nullptr;
};
struct ArgumentNodes {
  Body positional;
  std::vector<std::pair<std::string, const Node*>> keyword;
  const Node* star = nullptr;         // *args
  const Node* double_star = nullptr;  // **kwargs
};
struct CallNode : NodeOf<NodeKind::kCall> {
  using NodeOf::NodeOf;
  const Node* callee = nullptr;
  ArgumentNodes arguments;
};
struct FilterNode : NodeOf<NodeKind::kFilter> {
  using NodeOf::NodeOf;
  const Node* input = nullptr;  // null: the body of a filter or set block
  std::string name;
  FilterBody body = nullptr;  // null: unknown, an error when reached
  ArgumentNodes arguments;
};
struct TestNode : NodeOf<NodeKind::kTest> {
  using NodeOf::NodeOf;
  const Node* input = nullptr;
  std::string name;
  TestBody body = nullptr;
  ArgumentNodes arguments;
};

struct TextNode : NodeOf<NodeKind::kText> {
  using NodeOf::NodeOf;
  TextPtr text;
};
struct OutputNode : NodeOf<NodeKind::kOutput> {
  using NodeOf::NodeOf;
  Body items;
};
struct IfNode : NodeOf<NodeKind::kIf> {
  using NodeOf::NodeOf;
  std::vector<std::pair<const Node*, Body>> branches;
  Body otherwise;
};
struct ForNode : NodeOf<NodeKind::kFor> {
  using NodeOf::NodeOf;
  const Node* target = nullptr;
  const Node* iterable = nullptr;
  const Node* test = nullptr;  // may be null
  bool recursive = false;
  Body body;
  Body otherwise;
};
struct NamespaceTargetNode : NodeOf<NodeKind::kNamespaceTarget> {
  using NodeOf::NodeOf;
  Symbol symbol = 0;
  TextPtr attribute;
};
struct SetNode : NodeOf<NodeKind::kSet> {
  using NodeOf::NodeOf;
  const Node* target = nullptr;  // kName, kSequence or kNamespaceTarget
  const Node* value = nullptr;
};
struct SetBlockNode : NodeOf<NodeKind::kSetBlock> {
  using NodeOf::NodeOf;
  const Node* target = nullptr;
  const Node* filter = nullptr;  // may be null
  Body body;
};
struct MacroNode : NodeOf<NodeKind::kMacro> {
  using NodeOf::NodeOf;
  TextPtr name;  // null: the body of a call block
  Symbol symbol = 0;
  struct Parameter {
    std::string name;
    Symbol symbol = 0;
    const Node* fallback = nullptr;  // may be null
  };
  std::vector<Parameter> parameters;
  Body body;
  // The special names that the body uses decide what a call may pass.
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};
struct CallBlockNode : NodeOf<NodeKind::kCallBlock> {
  using NodeOf::NodeOf;
  const CallNode* call = nullptr;
  const MacroNode* caller = nullptr;
};
struct FilterBlockNode : NodeOf<NodeKind::kFilterBlock> {
  using NodeOf::NodeOf;
  const Node* filter = nullptr;
  Body body;
};
// A body with variables of its own: generation, with.
struct ScopeNode : NodeOf<NodeKind::kScope> {
  using NodeOf::NodeOf;
  std::vector<std::pair<const Node*, const Node*>> assignments;
  Body body;
};
struct BreakNode : NodeOf<NodeKind::kBreak> {
  using NodeOf::NodeOf;
};
struct ContinueNode : NodeOf<NodeKind::kContinue> {
  using NodeOf::NodeOf;
};

}  // namespace omnibus::jinja
