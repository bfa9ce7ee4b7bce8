// Logging: one line per event on stderr, text or JSON, whatever the message holds. Prompts are never logged
// by default. A line is a message and, where programs read it, named values beside it:
//   text: 12:00:00.123 I request finished request_id=req_1 e2e_ms=12.5
//   JSON: {"ts":"2026-01-01T12:00:00.123Z","level":"info","msg":"request finished","request_id":"req_1",...}
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "omnibus/base/common/status.h"

namespace omnibus {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// Call once, before threads start. The default is info, text.
void init_log(LogLevel level, LogFormat format);
StatusOr<LogLevel> parse_log_level(std::string_view name);  // "debug" | "info" | "warning" | "error"
const char* log_level_name(LogLevel level);
// The level while the program runs. Any thread.
void set_log_level(LogLevel level);
LogLevel log_level();

// Keys are snake_case, and none of ts, level, msg. An empty string is left out.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, int64_t, double, bool> value;
};

bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
// The line without its end, as of `unix_ns` nanoseconds since the epoch.
std::string format_log_line(LogFormat format, int64_t unix_ns, LogLevel level, std::string_view message,
                            std::initializer_list<LogField> fields = {});
// Whether lines are JSON: then nothing else is written to stderr.
bool log_is_json();

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
