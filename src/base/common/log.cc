#include "omnibus/base/common/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iterator>

#include <unistd.h>

#include "omnibus/base/common/log_flush.h"
#include "omnibus/base/common/wall_clock.h"

#include "json_text.h"
#include "log_writer.h"

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;

char letter_of(LogLevel level) { return static_cast<char>(log_level_name(level)[0] - 'a' + 'A'); }

constexpr size_t kMaxQueuedBytes = 1 << 20;
// How long a process that leaves waits for the reader of its stderr.
constexpr auto kFlushLimit = std::chrono::milliseconds(500);

std::atomic<LogLevel> chosen_level{LogLevel::kInfo};
std::atomic<LogFormat> chosen_format{LogFormat::kText};

// The message of a text line: what would end the line, or steer a terminal, is written as an escape.
void append_text(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    if (is_c1_control(text)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(text[1]));
      text.remove_prefix(1);
    } else if (c < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
    } else {
      out += text.front();
    }
    text.remove_prefix(1);
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

std::string gap_line(int64_t lines) {
  return format_log_line(chosen_format, wall_clock_ns(), LogLevel::kWarning,
                         fmt::format("{} log lines were dropped: stderr was not read in time", lines),
                         {{"dropped", lines}});
}

// Made by the first line, and never destroyed: threads may log until the process is gone.
LogWriter& writer() {
  static LogWriter* const instance = [] {
    auto* made = new LogWriter(STDERR_FILENO, kMaxQueuedBytes, gap_line);
    std::atexit(flush_log);
    return made;
  }();
  return *instance;
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
  chosen_level = level;
}

StatusOr<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == log_level_name(level)) return level;
  }
  return absl::InvalidArgumentError(
      fmt::format("log level '{}' is none of debug, info, warning, error", name));
}

void set_log_level(LogLevel level) { chosen_level = level; }

LogLevel log_level() { return chosen_level; }

bool log_enabled(LogLevel level) { return level >= chosen_level.load(); }

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
  writer().put(format_log_line(chosen_format, wall_clock_ns(), level, message, fields));
}

void flush_log() { static_cast<void>(writer().flush(kFlushLimit)); }

int64_t dropped_log_lines() { return writer().dropped(); }

}  // namespace omnibus
