#include "terminal_input.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <unistd.h>

namespace omnibus {
namespace {

std::atomic<std::atomic<bool>*> interrupt_target{nullptr};

void on_interrupt(int /*signal*/) {
  if (std::atomic<bool>* target = interrupt_target.load()) target->store(true);
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART: read() returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptFlag::InterruptFlag(std::atomic<bool>* flag) {
  interrupt_target = flag;
  install(on_interrupt);
}

InterruptFlag::~InterruptFlag() {
  install(SIG_DFL);
  interrupt_target = nullptr;
}

LineReader::Result LineReader::read_line(std::string& line) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return Result::kLine;
    }
    if (ended_) {
      if (buffer_.empty()) return Result::kEnd;
      line = std::exchange(buffer_, {});
      return Result::kLine;
    }
    std::array<char, 4096> chunk{};
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      buffer_.clear();
      return Result::kInterrupted;
    } else {
      ended_ = true;
    }
  }
}

std::string LineReader::read_all() {
  std::string all, line;
  while (read_line(line) == Result::kLine) all += line + "\n";
  if (all.ends_with('\n')) all.pop_back();
  return all;
}

}  // namespace omnibus
