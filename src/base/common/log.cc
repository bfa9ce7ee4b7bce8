#include "omnibus/base/common/log.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <iterator>
#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "omnibus/base/common/wall_clock.h"

#include "json_text.h"

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

char letter_of(LogLevel level) { return static_cast<char>(log_level_name(level)[0] - 'a' + 'A'); }

std::shared_ptr<spdlog::logger> make_logger(LogLevel level) {
  auto logger =
      std::make_shared<spdlog::logger>("omnibus", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(to_spdlog(level));
  logger->set_pattern("%v");
  return logger;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = make_logger(LogLevel::kInfo);
  return instance;
}

std::atomic<LogFormat> chosen_format{LogFormat::kText};

// The message of a text line: what would end the line, or steer a terminal, is written as an escape.
void append_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
}

bool is_bare(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:/@+-").find(c) != std::string_view::npos;
  });
}

struct AppendValue {
  std::string& out;
  LogFormat format;

  void operator()(std::string_view value) const {
    if (format == LogFormat::kText && is_bare(value)) {
      out += value;
    } else {
      append_json_string(out, value);
    }
  }
  void operator()(int64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(double value) const {
    if (std::isfinite(value)) {
      fmt::format_to(std::back_inserter(out), "{}", value);
    } else {
      out += "null";
    }
  }
  void operator()(bool value) const { out += value ? "true" : "false"; }
};

bool is_empty(const LogField& field) {
  const auto* text = std::get_if<std::string_view>(&field.value);
  return text != nullptr && text->empty();
}

// Seconds are those of UTC in JSON, which other machines read, and local in text, which people read.
void append_time(std::string& out, LogFormat format, int64_t unix_ns) {
  const std::time_t seconds = unix_ns / kSecond;
  std::tm parts{};
  if (format == LogFormat::kJson) {
    gmtime_r(&seconds, &parts);
  } else {
    localtime_r(&seconds, &parts);
  }
  char text[32];
  out.append(text,
             std::strftime(text, sizeof text, format == LogFormat::kJson ? "%Y-%m-%dT%T" : "%T", &parts));
  fmt::format_to(std::back_inserter(out), ".{:03}", unix_ns % kSecond / kMillisecond);
}

}  // namespace

const char* log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

void init_log(LogLevel level, LogFormat format) {
  chosen_format = format;
  logger() = make_logger(level);
}

StatusOr<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == log_level_name(level)) return level;
  }
  return absl::InvalidArgumentError(
      fmt::format("log level '{}' is none of debug, info, warning, error", name));
}

void set_log_level(LogLevel level) { logger()->set_level(to_spdlog(level)); }

LogLevel log_level() {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning}) {
    if (log_enabled(level)) return level;
  }
  return LogLevel::kError;
}

bool log_enabled(LogLevel level) { return logger()->should_log(to_spdlog(level)); }

bool log_is_json() { return chosen_format == LogFormat::kJson; }

std::string format_log_line(LogFormat format, int64_t unix_ns, LogLevel level, std::string_view message,
                            std::initializer_list<LogField> fields) {
  const bool json = format == LogFormat::kJson;
  std::string out = json ? R"({"ts":")" : "";
  append_time(out, format, unix_ns);
  if (json) {
    out += fmt::format(R"(Z","level":"{}","msg":)", log_level_name(level));
    append_json_string(out, message);
  } else {
    out += ' ';
    out += letter_of(level);
    out += ' ';
    append_text(out, message);
  }
  for (const LogField& field : fields) {
    if (is_empty(field)) continue;
    out += json ? "," : " ";
    if (json) {
      append_json_string(out, field.key);
    } else {
      out += field.key;
    }
    out += json ? ':' : '=';
    std::visit(AppendValue{out, format}, field.value);
  }
  if (json) out += '}';
  return out;
}

void log_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  const std::string line = format_log_line(chosen_format, wall_clock_ns(), level, message, fields);
  logger()->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace omnibus
