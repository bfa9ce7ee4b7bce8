// Arithmetic as Python does it: floor division, true division, integers that never wrap, + and * of
// sequences.
#include <cmath>

#include "format.h"
#include "operators.h"

namespace omnibus::jinja {
namespace {

constexpr const char* kOpName[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void fail_operands(BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kAdd && (a.is_text() || a.is_list()))
    fail(std::string("can only concatenate ") + type_name(a) + " (not \"" + type_name(b) + "\") to " +
         type_name(a));
  fail(std::string("unsupported operand type(s) for ") + kOpName[static_cast<int>(op)] + ": '" +
       type_name(a) + "' and '" + type_name(b) + "'");
}

[[noreturn]] void fail_large() { fail("integer too large: numbers beyond 128 bits are not supported"); }

Integer floor_div(Integer a, Integer b) {
  const Integer q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

Value integer_power(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? Integer{1} : base;
  if (base == -1) return exponent % 2 == 0 ? Integer{1} : Integer{-1};
  if (exponent > 127) fail_large();
  Integer result = 1;
  for (Integer i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) fail_large();
  return result;
}

Value integers(BinaryOp op, Integer a, Integer b) {
  Integer result = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_large();
      return result;
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &result)) fail_large();
      return result;
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &result)) fail_large();
      return result;
    case BinaryOp::kDiv:
      if (b == 0) fail("division by zero");
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
      if (b == 0) fail("integer division or modulo by zero");
      if (b == -1) {  // the one quotient that can overflow
        if (__builtin_sub_overflow(Integer{0}, a, &result)) fail_large();
        return op == BinaryOp::kMod ? Integer{0} : result;
      }
      return op == BinaryOp::kFloorDiv ? floor_div(a, b) : a - floor_div(a, b) * b;
    case BinaryOp::kPow:
      return integer_power(a, b);
  }
  return result;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    fail("a negative number to a fractional power is not supported");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    fail("(34, 'Numerical result out of range')");
  return result;
}

double float_floor_div(double a, double b, double* remainder) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  *remainder = mod;
  if (div == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(div);
  if (div - floored > 0.5) floored += 1;
  return floored;
}

Value floats(BinaryOp op, double a, double b) {
  double mod = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      if (b == 0) fail("float division by zero");
      return a / b;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      if (b == 0) fail(op == BinaryOp::kMod ? "float modulo" : "float floor division by zero");
      const double div = float_floor_div(a, b, &mod);
      return op == BinaryOp::kMod ? mod : div;
    }
    case BinaryOp::kPow:
      return float_power(a, b);
  }
  return 0.0;
}

Value concatenate(const TextPtr& a, const TextPtr& b, Budget& budget) {
  const bool markup = a->markup() || b->markup();
  TextBuilder out(&budget);
  out.append(markup ? *escape_html(a, budget) : *a);
  out.append(markup ? *escape_html(b, budget) : *b);
  return out.build(markup);
}

Value join_lists(const List& a, const List& b, Heap& heap) {
  heap.budget().bulk(a.items.size() + b.items.size());
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return heap.list(std::move(items), a.tuple);
}

Value repeat(const Value& sequence, Integer count, Heap& heap) {
  const size_t times =
      count < 0 ? 0 : static_cast<size_t>(count > (Integer{1} << 40) ? Integer{1} << 40 : count);
  Budget& budget = heap.budget();
  if (sequence.is_text()) {
    const Text& text = *sequence.text();
    TextBuilder out(&budget);
    if (text.runs().size() == 1) {
      out.append_repeated(text.view(), times, text.runs()[0].trusted);
    } else if (!text.empty()) {
      budget.check_text(times);
      budget.check_text(times * text.size());
      for (size_t i = 0; i < times; ++i) {
        budget.step();
        out.append(text);
      }
    }
    return out.build(text.markup());
  }
  const List& list = *sequence.list();
  if (!list.items.empty()) {
    // Refuse before the vector grows.
    const size_t total = list.items.size() * times;
    budget.bulk(total);
    budget.allocate(total * sizeof(Value));
    budget.release(total * sizeof(Value));
  }
  std::vector<Value> items;
  for (size_t i = 0; i < times && !list.items.empty(); ++i)
    items.insert(items.end(), list.items.begin(), list.items.end());
  return heap.list(std::move(items), list.tuple);
}

}  // namespace

Value binary(BinaryOp op, const Value& a, const Value& b, Heap& heap) {
  if (a.is_text() && op == BinaryOp::kMod) return format_percent(a.text(), b, heap);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return floats(op, a.as_double(), b.as_double());
  if (op == BinaryOp::kAdd) {
    if (a.is_text() && b.is_text()) return concatenate(a.text(), b.text(), heap.budget());
    if (a.is_list() && b.is_list() && a.list()->tuple == b.list()->tuple)
      return join_lists(*a.list(), *b.list(), heap);
  }
  if (op == BinaryOp::kMul) {
    if ((a.is_text() || a.is_list()) && b.is_integral()) return repeat(a, b.integer(), heap);
    if ((b.is_text() || b.is_list()) && a.is_integral()) return repeat(b, a.integer(), heap);
  }
  fail_operands(op, a, b);
}

Value negate(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) {
    Integer result = 0;
    if (__builtin_sub_overflow(Integer{0}, value.integer(), &result)) fail_large();
    return result;
  }
  if (value.type() == Type::kFloat) return -value.real();
  fail(std::string("bad operand type for unary -: '") + type_name(value) + "'");
}

Value positive(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return value.integer();
  if (value.type() == Type::kFloat) return value;
  fail(std::string("bad operand type for unary +: '") + type_name(value) + "'");
}

}  // namespace omnibus::jinja
