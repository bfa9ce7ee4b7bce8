// Functions that every template sees: namespace, dict, range, joiner, cycler, raise_exception, strftime_now.
#pragma once

#include <string_view>

#include "object.h"

namespace omnibus::jinja {

// nullptr when there is no such function.
FunctionBody find_global(std::string_view name);
// The static spelling of a known name.
const char* global_name(std::string_view name);

}  // namespace omnibus::jinja
