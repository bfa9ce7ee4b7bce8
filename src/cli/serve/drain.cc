#include "drain.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/log.h"
#include "omnibus/base/common/log_flush.h"

#include "durations.h"

namespace omnibus {
namespace {

constexpr std::chrono::milliseconds kPoll(20);

// One turn of waiting: a second stop signal ends the process, reloads are refused.
void wait_a_little(Control& control) {
  const Control::Events events = control.wait_for(kPoll);
  for (const auto& done : events.reloads) done(absl::UnavailableError("The server is draining"));
  if (!events.signal || *events.signal == SIGHUP) return;
  log_warning("second signal: leaving at once");
  flush_log();
  std::_Exit(128 + *events.signal);
}

bool has_work(const EngineHealth& health) {
  return health.live() && (health.running > 0 || health.waiting > 0);
}

}  // namespace

EngineTrouble drain(Control& control, AsyncEngine& engine, const Listeners& listeners,
                    const HttpConfig& config) {
  const EngineHealth health = engine.health();
  log_info("draining: {} running, {} waiting; requests are taken for {} s more, then at most {} s",
           health.running, health.waiting, config.drain_delay_s, config.drain_timeout_s);
  const SteadyClock clock;
  const MonotonicNs refuse_at =
      clock.now_ns() + std::chrono::nanoseconds(to_ms(config.drain_delay_s)).count();
  while (clock.now_ns() < refuse_at) wait_a_little(control);

  listeners.begin_drain();
  auto done = std::async(std::launch::async, [&] {
    if (!engine.drain(to_ms(config.drain_timeout_s))) {
      log_warning("drain: the time is up, the rest was aborted");
    }
    listeners.stop(kFlushLimit);
  });
  while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) wait_a_little(control);
  // What was aborted ends when the step in flight does; one that takes too long is called a stall by then.
  while (has_work(engine.health())) wait_a_little(control);
  return engine.health().trouble;
}

}  // namespace omnibus
