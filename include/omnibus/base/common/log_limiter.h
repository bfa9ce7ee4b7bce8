// LogLimiter: bounds the lines that clients can cause. A flood of bad requests must not flood the log.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/metrics.h"

namespace omnibus {

// Lets so many lines through in each window of time; of the rest it says how many there were, with the first
// line of a later window and at its own end. Any thread.
class LogLimiter {
 public:
  // `what` names the lines in that sentence: "lines about refused requests". `suppressed` counts, too.
  LogLimiter(std::string what, int32_t lines, MonotonicNs window_ns, const Clock* clock, Counter suppressed);
  ~LogLimiter();
  LogLimiter(const LogLimiter&) = delete;
  LogLimiter& operator=(const LogLimiter&) = delete;

  // Whether a line may be written now.
  bool admit();

 private:
  void report(int64_t suppressed) const;

  const std::string what_;
  const int32_t lines_;
  const MonotonicNs window_ns_;
  const Clock* const clock_;
  const Counter counter_;
  std::mutex mutex_;
  MonotonicNs window_start_ns_;
  int32_t admitted_ = 0;    // in this window
  int64_t suppressed_ = 0;  // not yet reported
};

}  // namespace omnibus
