#include "watchdog.h"

#include "omnibus/base/common/mutant.h"

namespace omnibus {

bool Watchdog::tick(MonotonicNs now, const StepWatch& watch) {
  const bool stood_still = last_tick_ns_ != 0 && now - last_tick_ns_ > kLongestTickNs;
  last_tick_ns_ = now;
  if (watch.started_ns == 0 && !OMNIBUS_MUTANT(18)) {
    watched_ = {};
    return false;
  }
  if (watch.started_ns != 0 && !(watch == watched_)) {
    watched_ = watch;
    armed_ns_ = watch.started_ns;
  }
  if (stood_still) armed_ns_ = now;
  return watched_.started_ns != 0 && now - armed_ns_ > watched_.allowed_ns;
}

}  // namespace omnibus
