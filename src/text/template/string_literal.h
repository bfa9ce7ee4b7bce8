// The escapes of Python string literals.
#pragma once

#include <string>
#include <string_view>

namespace omnibus::jinja {

// Appends the value of a literal's inside to `out`. Returns an error message, or nullptr.
const char* unescape(std::string_view literal, std::string& out);

}  // namespace omnibus::jinja
