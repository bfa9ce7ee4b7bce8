// Logging: one line per event on stderr, text or JSON. Prompts are never logged by default.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "omnibus/base/common/status.h"

namespace omnibus {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// Call once, before threads start. The default is info, text.
void init_log(LogLevel level, LogFormat format);
StatusOr<LogLevel> parse_log_level(std::string_view name);  // "debug" | "info" | "warning" | "error"

bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view message);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> f, Args&&... a) {
  log(LogLevel::kInfo, f, std::forward<Args>(a)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> f, Args&&... a) {
  log(LogLevel::kWarning, f, std::forward<Args>(a)...);
}
template <typename... Args>
void log_error(fmt::format_string<Args...> f, Args&&... a) {
  log(LogLevel::kError, f, std::forward<Args>(a)...);
}

}  // namespace omnibus
