#include "omnibus/base/common/check.h"

#include <cstdlib>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/log_flush.h"

namespace omnibus::internal {

void check_failed(const char* file, int line, const char* expression, std::string_view message) {
  const std::string text = fmt::format("check failed at {}:{}: {}: {}", file, line, expression, message);
  if (log_is_json()) log_line(LogLevel::kError, text);
  flush_log();
  if (!log_is_json()) fmt::print(stderr, "omnibus: {}\n", text);
  std::abort();
}

}  // namespace omnibus::internal
