#include "verdict.h"

#include <algorithm>
#include <cstdio>

namespace omnibus::sim {

void Trace::add(std::string line) {
  const MonotonicNs now = clock_->now_ns();
  hash_ = splitmix64(hash_, static_cast<uint64_t>(now));
  for (char c : line) hash_ = splitmix64(hash_, static_cast<unsigned char>(c));
  line = std::to_string(now / 1000) + " us  " + line;
  if (echo_) std::puts(line.c_str());
  last_[count_++ % kTail] = std::move(line);
}

std::vector<std::string> Trace::tail() const {
  std::vector<std::string> lines;
  for (uint64_t i = count_ - std::min<uint64_t>(count_, kTail); i < count_; ++i)
    lines.push_back(last_[i % kTail]);
  return lines;
}

}  // namespace omnibus::sim
