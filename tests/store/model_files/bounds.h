// What reading a hostile file may cost: time, and growth of the peak resident set.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace omnibus {

// A field of /proc/self/status in KiB.
inline int64_t process_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

// Resident KiB of the mapping of a file, counted by the kernel from the page tables (the counters of
// /proc/self/status lag behind).
inline int64_t mapped_kib(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path)) found = true;
    if (found && line.starts_with("Rss:")) return std::stoll(line.substr(4));
  }
  return -1;
}

// The promise (docs/testing.md, S3 and F17) is 2 s. A machine that others use, too, may take many times as
// long: here only hangs, and what takes quadratic time, are caught. Sanitizers multiply time and memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kMaxSeconds = 120.0;
inline constexpr int64_t kMaxGrowthKib = 4 << 20;
#else
inline constexpr double kMaxSeconds = 30.0;
inline constexpr int64_t kMaxGrowthKib = 64 << 10;
#endif

struct Cost {
  double seconds = 0;
  int64_t peak_growth_kib = 0;
};

template <typename Fn>
Cost cost_of(Fn&& fn) {
  std::ofstream("/proc/self/clear_refs") << "5";  // restarts the peak
  const int64_t before = process_kib("VmRSS");
  const auto begin = std::chrono::steady_clock::now();
  fn();
  Cost cost;
  cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  cost.peak_growth_kib = process_kib("VmHWM") - before;
  return cost;
}

}  // namespace omnibus
