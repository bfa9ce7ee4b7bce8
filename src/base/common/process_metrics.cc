#include "process_metrics.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <unistd.h>

#include "omnibus/base/common/log_flush.h"

namespace omnibus {
namespace {

constexpr double kMicro = 1e-6;

prometheus::MetricFamily family(const char* name, const char* help, prometheus::MetricType type,
                                double value) {
  prometheus::ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  return {name, help, type, {metric}};
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * kMicro;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Without the one that the counting itself takes.
std::optional<int64_t> open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator it("/proc/self/fd", error);
  int64_t n = -1;
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) ++n;
  if (error) return std::nullopt;
  return n;
}

struct Memory {
  double virtual_bytes = 0, resident_bytes = 0;
};

std::optional<Memory> memory() {
  std::ifstream in("/proc/self/statm");
  Memory memory;
  if (!(in >> memory.virtual_bytes >> memory.resident_bytes)) return std::nullopt;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  memory.virtual_bytes *= page;
  memory.resident_bytes *= page;
  return memory;
}

// proc(5): starttime is field 22 of stat, in ticks since boot; btime of /proc/stat is the boot.
std::optional<double> start_seconds() {
  std::ifstream in("/proc/self/stat");
  std::string stat;
  std::getline(in, stat);
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  double ticks = 0, boot = 0;
  if (!(fields >> ticks)) return std::nullopt;
  std::ifstream system("/proc/stat");
  for (std::string key; system >> key;) {
    if (key == "btime" && system >> boot) return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return std::nullopt;
}

}  // namespace

std::vector<prometheus::MetricFamily> process_metrics() {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> out;
  out.push_back(family("process_cpu_seconds_total", "CPU time of this process in seconds",
                       MetricType::Counter, cpu_seconds()));
  if (const auto n = open_descriptors())
    out.push_back(
        family("process_open_fds", "Open file descriptors", MetricType::Gauge, static_cast<double>(*n)));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out.push_back(family("process_max_fds", "Most file descriptors it may open", MetricType::Gauge,
                         static_cast<double>(limit.rlim_cur)));
  if (const auto used = memory()) {
    out.push_back(family("process_virtual_memory_bytes", "Address space in bytes", MetricType::Gauge,
                         used->virtual_bytes));
    out.push_back(family("process_resident_memory_bytes", "Memory that is present in bytes",
                         MetricType::Gauge, used->resident_bytes));
  }
  static const std::optional<double> start = start_seconds();
  if (start)
    out.push_back(family("process_start_time_seconds", "Start of this process, seconds since the epoch",
                         MetricType::Gauge, *start));
  out.push_back(family("omnibus_log_lines_dropped_total",
                       "Log lines dropped because stderr was not read in time", MetricType::Counter,
                       static_cast<double>(dropped_log_lines())));
  return out;
}

}  // namespace omnibus
