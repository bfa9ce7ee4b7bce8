#include "stop_signals.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include "omnibus/base/common/log_flush.h"
#include "omnibus/cli/serve.h"

namespace omnibus {
namespace {

constexpr int kWake = SIGUSR1;

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

std::optional<int> wait_for_one(const sigset_t& set, std::chrono::milliseconds limit) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(limit.count() / 1000);
  time.tv_nsec = static_cast<long>(limit.count() % 1000) * 1'000'000;
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? std::optional<int>(signal) : std::nullopt;
}

}  // namespace

Signals::Signals() : owner_(pthread_self()) {
  const sigset_t set = set_of({SIGTERM, SIGINT, SIGHUP, kWake});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<int> Signals::wait_for(std::chrono::milliseconds limit) const {
  const auto signal = wait_for_one(set_of({SIGTERM, SIGINT, SIGHUP, kWake}), limit);
  return signal == kWake ? std::nullopt : signal;
}

void Signals::wake() const { pthread_kill(owner_, kWake); }

void block_hangup() {
  const sigset_t set = set_of({SIGHUP});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

ExitOnStopSignal::ExitOnStopSignal()
    : thread_([this] {
        const sigset_t set = set_of({SIGTERM, SIGINT});
        while (!done_.load()) {
          if (const auto signal = wait_for_one(set, std::chrono::milliseconds(20))) {
            flush_log();
            std::_Exit(128 + *signal);
          }
        }
      }) {}

ExitOnStopSignal::~ExitOnStopSignal() {
  done_ = true;
  thread_.join();
}

}  // namespace omnibus
