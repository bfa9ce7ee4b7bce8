#include "omnibus/base/common/log_limiter.h"

#include <utility>

#include "omnibus/base/common/log.h"

namespace omnibus {

LogLimiter::LogLimiter(std::string what, int32_t lines, MonotonicNs window_ns, const Clock* clock,
                       Counter suppressed)
    : what_(std::move(what)),
      lines_(lines),
      window_ns_(window_ns),
      clock_(clock),
      counter_(suppressed),
      window_start_ns_(clock->now_ns()) {}

LogLimiter::~LogLimiter() { report(suppressed_); }

bool LogLimiter::admit() {
  int64_t unreported = 0;
  bool admitted = false;
  {
    std::lock_guard lock(mutex_);
    const MonotonicNs now = clock_->now_ns();
    if (now - window_start_ns_ >= window_ns_) {
      window_start_ns_ = now;
      admitted_ = 0;
      unreported = std::exchange(suppressed_, 0);
    }
    admitted = admitted_ < lines_;
    admitted ? ++admitted_ : ++suppressed_;
  }
  if (!admitted) counter_.add();
  report(unreported);
  return admitted;
}

void LogLimiter::report(int64_t suppressed) const {
  if (suppressed == 0) return;
  log_line(LogLevel::kWarning, fmt::format("{} {} were suppressed", suppressed, what_),
           {{"suppressed", suppressed}});
}

}  // namespace omnibus
