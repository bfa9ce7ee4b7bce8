#include "omnibus/base/common/check.h"

#include <cstdio>
#include <cstdlib>

namespace omnibus::internal {

void check_failed(const char* file, int line, const char* expression, std::string_view message) {
  std::fprintf(stderr, "omnibus: check failed at %s:%d: %s: %.*s\n", file, line, expression,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace omnibus::internal
