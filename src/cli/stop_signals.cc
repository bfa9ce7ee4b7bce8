#include "stop_signals.h"

#include <csignal>
#include <cstdlib>
#include <ctime>

#include <pthread.h>

namespace omnibus {
namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<int> StopSignals::wait_for(std::chrono::milliseconds limit) const {
  const sigset_t set = stop_set();
  timespec time{};
  time.tv_sec = static_cast<time_t>(limit.count() / 1000);
  time.tv_nsec = static_cast<long>(limit.count() % 1000) * 1'000'000;
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? std::optional<int>(signal) : std::nullopt;
}

ExitOnStopSignal::ExitOnStopSignal()
    : thread_([this] {
        const StopSignals signals;
        while (!done_.load()) {
          if (const auto signal = signals.wait_for(std::chrono::milliseconds(20))) std::_Exit(128 + *signal);
        }
      }) {}

ExitOnStopSignal::~ExitOnStopSignal() {
  done_ = true;
  thread_.join();
}

}  // namespace omnibus
