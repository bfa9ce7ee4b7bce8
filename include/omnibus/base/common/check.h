// Check macros for invariants: a failure is a bug of ours, prints the place and ends the process. Bad input
// is never checked with these; it gets a Status.
#pragma once

#include <string_view>

namespace omnibus::internal {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, std::string_view message);
}

#define OMNIBUS_CHECK(cond, message)                                         \
  do {                                                                       \
    if (!(cond)) [[unlikely]]                                                \
      ::omnibus::internal::check_failed(__FILE__, __LINE__, #cond, message); \
  } while (false)

#ifdef NDEBUG
#define OMNIBUS_DCHECK(cond, message) \
  do {                                \
  } while (false && (cond))
#else
#define OMNIBUS_DCHECK(cond, message) OMNIBUS_CHECK(cond, message)
#endif
