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
