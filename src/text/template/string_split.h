// str.split(), rsplit(), splitlines(), isupper(), islower().
#pragma once

#include "object.h"

namespace omnibus::jinja {

class Interpreter;

template <bool kFromRight>
Value method_split(Interpreter& in, const Value& self, const CallArgs& args);
Value method_splitlines(Interpreter& in, const Value& self, const CallArgs& args);
// At least one cased character, and none of the other case.
template <bool kUpper>
Value method_case_test(Interpreter& in, const Value& self, const CallArgs& args);

}  // namespace omnibus::jinja
