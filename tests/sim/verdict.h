// What a run found: the first invariant that did not hold, and a trace whose hash tells two runs apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/rng.h"

namespace omnibus::sim {

struct Violation {
  std::string invariant;  // "I1" ...
  std::string what;
  MonotonicNs at = 0;
};

// Keeps the first violation; what follows from it is noise.
class Verdict {
 public:
  explicit Verdict(const Clock* clock) : clock_(clock) {}
  void fail(std::string_view invariant, std::string what) {
    if (!violation_) violation_ = Violation{std::string(invariant), std::move(what), clock_->now_ns()};
  }
  bool ok() const { return !violation_; }
  const std::optional<Violation>& violation() const { return violation_; }

 private:
  const Clock* clock_;
  std::optional<Violation> violation_;
};

// Hashes every line and keeps the last ones.
class Trace {
 public:
  Trace(const Clock* clock, bool echo) : clock_(clock), echo_(echo) {}
  void add(std::string line);
  uint64_t hash() const { return hash_; }
  uint64_t lines() const { return count_; }
  std::vector<std::string> tail() const;

 private:
  static constexpr size_t kTail = 60;
  const Clock* clock_;
  bool echo_;
  uint64_t hash_ = 0;
  uint64_t count_ = 0;
  std::array<std::string, kTail> last_;
};

}  // namespace omnibus::sim
