// Tests: x is name, x is name(argument).
#include <iterator>

#include "filters.h"
#include "format.h"
#include "interpreter.h"
#include "operators.h"
#include "string_split.h"

namespace omnibus::jinja {
namespace {

using Body = TestBody;

template <bool (*kPasses)(const Value&)>
bool simple(Interpreter&, const Value& input, const CallArgs& args) {
  BoundArgs("test", args, {});
  return kPasses(input);
}

bool defined(const Value& v) { return !v.is_undefined(); }
bool undefined(const Value& v) { return v.is_undefined(); }
bool none(const Value& v) { return v.is_none(); }
bool string(const Value& v) { return v.is_text(); }
bool number(const Value& v) { return v.is_number(); }
bool integer(const Value& v) { return v.type() == Type::kInt; }
bool real(const Value& v) { return v.type() == Type::kFloat; }
bool boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.boolean(); }
bool is_false(const Value& v) { return v.is_bool() && !v.boolean(); }
bool mapping(const Value& v) { return v.is_dict(); }
bool escaped(const Value& v) { return v.is_text() && v.text()->markup(); }

bool iterable(const Value& v) {
  if (v.is_undefined() || v.is_text() || v.is_list() || v.is_dict()) return true;
  return as_range(v) != nullptr || as_view(v) != nullptr || as_iterator(v) != nullptr ||
         (v.is_object() && v.object()->kind() == Object::Kind::kLoop);
}

// Has a length and items by key.
bool sequence(const Value& v) {
  return v.is_undefined() || v.is_text() || v.is_list() || v.is_dict() || as_range(v) != nullptr;
}

bool callable(const Value& v) {
  if (v.is_undefined()) return true;  // Python: Undefined has a __call__ (that raises)
  if (!v.is_object()) return false;
  switch (v.object()->kind()) {
    case Object::Kind::kFunction:
    case Object::Kind::kMethod:
    case Object::Kind::kMacro:
    case Object::Kind::kLoop:
    case Object::Kind::kJoiner:
      return true;
    default:
      return false;
  }
}

Value modulo(Interpreter& in, const Value& a, const Value& b) {
  return binary(BinaryOp::kMod, a, b, in.heap());
}

bool odd(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("odd", args, {});
  return values_equal(modulo(in, input, 2), 1);
}
bool even(Interpreter& in, const Value& input, const CallArgs& args) {
  BoundArgs("even", args, {});
  return values_equal(modulo(in, input, 2), 0);
}
bool divisible(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("divisibleby", args, {"num"}, 1);
  return values_equal(modulo(in, input, bound.at(0)), 0);
}

template <CompareOp kOp>
bool compared(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("comparison", args, {"other"}, 1);
  return compare(kOp, input, bound.at(0), in.heap());
}

bool is_in(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("in", args, {"seq"}, 1);
  return contains(bound.at(0), input, in.budget());
}

template <bool kUpper>
bool letter_case(Interpreter& in, const Value& input, const CallArgs& args) {
  return is_truthy(method_case_test<kUpper>(in, to_text(input, in.heap()), args));
}

bool same_as(Interpreter& in, const Value& input, const CallArgs& args) {
  const BoundArgs bound("sameas", args, {"other"}, 1);
  const Value& other = bound.at(0);
  if (input.type() != other.type()) return false;
  if (input.is_list()) return input.list() == other.list();
  if (input.is_dict()) return input.dict() == other.dict();
  if (input.is_object()) return input.object() == other.object();
  return values_equal(input, other, &in.budget());
}

bool is_filter(Interpreter&, const Value& input, const CallArgs& args) {
  BoundArgs("filter", args, {});
  return input.is_text() && find_filter(input.view()) != nullptr;
}
bool is_test(Interpreter&, const Value& input, const CallArgs& args) {
  BoundArgs("test", args, {});
  return input.is_text() && find_test(input.view()) != nullptr;
}

struct NamedTest {
  std::string_view name;
  Body body;
};
constexpr NamedTest kTests[] = {
    {"defined", simple<defined>},
    {"undefined", simple<undefined>},
    {"none", simple<none>},
    {"string", simple<string>},
    {"number", simple<number>},
    {"integer", simple<integer>},
    {"float", simple<real>},
    {"boolean", simple<boolean>},
    {"true", simple<is_true>},
    {"false", simple<is_false>},
    {"mapping", simple<mapping>},
    {"iterable", simple<iterable>},
    {"sequence", simple<sequence>},
    {"callable", simple<callable>},
    {"escaped", simple<escaped>},
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisible},
    {"in", is_in},
    {"eq", compared<CompareOp::kEq>},
    {"equalto", compared<CompareOp::kEq>},
    {"==", compared<CompareOp::kEq>},
    {"ne", compared<CompareOp::kNe>},
    {"!=", compared<CompareOp::kNe>},
    {"lt", compared<CompareOp::kLt>},
    {"lessthan", compared<CompareOp::kLt>},
    {"<", compared<CompareOp::kLt>},
    {"le", compared<CompareOp::kLe>},
    {"<=", compared<CompareOp::kLe>},
    {"gt", compared<CompareOp::kGt>},
    {"greaterthan", compared<CompareOp::kGt>},
    {">", compared<CompareOp::kGt>},
    {"ge", compared<CompareOp::kGe>},
    {">=", compared<CompareOp::kGe>},
    {"lower", letter_case<false>},
    {"upper", letter_case<true>},
    {"sameas", same_as},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

TestBody find_test(std::string_view name) {
  for (const NamedTest& test : kTests)
    if (test.name == name) return test.body;
  return nullptr;
}

}  // namespace omnibus::jinja
