// Python's operators on values: truth, equality, order, membership, arithmetic.
#pragma once

#include <string>
#include <string_view>

#include "value.h"

namespace omnibus::jinja {

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

bool is_truthy(const Value& value);
// `budget` may be null where the size of both sides is known to be small.
bool values_equal(const Value& a, const Value& b, Budget* budget = nullptr);
// a < b; a type error where Python has one.
bool value_less(const Value& a, const Value& b, Budget& budget);
bool compare(CompareOp op, const Value& a, const Value& b, Heap& heap);
bool contains(const Value& container, const Value& item, Budget& budget);

Value binary(BinaryOp op, const Value& a, const Value& b, Heap& heap);
Value negate(const Value& value);
Value positive(const Value& value);

// The message of a use of an undefined value, thrown.
[[noreturn]] void fail_undefined(const Value& undefined);

// HTML-escapes ("&<>'\""), into Markup; Markup is returned as it is.
TextPtr escape_html(const TextPtr& text, Budget& budget);

// First position of `needle` at or after `from`, npos if none; linear time.
size_t find_text(std::string_view haystack, std::string_view needle, size_t from = 0);
size_t rfind_text(std::string_view haystack, std::string_view needle);

}  // namespace omnibus::jinja
