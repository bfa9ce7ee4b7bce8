#include "omnibus/store/model_files/load_guard.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include <unistd.h>

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

// Signal handlers have no argument of ours, so what they look at is process-wide. A slot is published by its
// `size`.
struct Slot {
  std::atomic<size_t> size{0};  // 0: free
  const uint8_t* begin = nullptr;
  const char* path = nullptr;
};
std::array<Slot, 16> slots;

std::mutex install_mutex;
int guards = 0;
struct sigaction previous;

void write_text(const char* text) {
  for (size_t left = std::strlen(text); left > 0;) {
    const ssize_t n = ::write(STDERR_FILENO, text, left);
    if (n <= 0) return;
    text += n;
    left -= static_cast<size_t>(n);
  }
}

void write_number(size_t value) {
  char digits[24];
  char* p = digits + sizeof digits;
  *--p = '\0';
  do {
    *--p = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  write_text(p);
}

// Async-signal-safe calls only. Returning without a match runs the faulting access again under the earlier
// action.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const uint8_t*>(info->si_addr);
  for (const Slot& slot : slots) {
    const size_t size = slot.size.load(std::memory_order_acquire);
    if (info->si_code <= 0) break;  // sent by a process: no address
    if (size == 0 || address < slot.begin || address >= slot.begin + size) continue;
    write_text(slot.path);
    write_text(": the file was cut short or cannot be read at byte ");
    write_number(static_cast<size_t>(address - slot.begin));
    write_text(" while it was being loaded\n");
    ::_exit(kUnreadableFileExit);
  }
  ::sigaction(SIGBUS, &previous, nullptr);
}

}  // namespace

LoadGuard::LoadGuard(std::shared_ptr<const GgufFile> file) : file_(std::move(file)), slot_(-1) {
  const std::lock_guard<std::mutex> lock(install_mutex);
  for (size_t i = 0; i < slots.size() && slot_ < 0; ++i) {
    if (slots[i].size.load(std::memory_order_relaxed) == 0) slot_ = static_cast<int>(i);
  }
  OMNIBUS_CHECK(slot_ >= 0, "at most 16 files are loaded at a time");
  Slot& slot = slots[static_cast<size_t>(slot_)];
  slot.begin = file_->mapping().data();
  slot.path = file_->label().c_str();
  slot.size.store(file_->mapping().size(), std::memory_order_release);
  if (guards++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous);
}

LoadGuard::~LoadGuard() {
  const std::lock_guard<std::mutex> lock(install_mutex);
  slots[static_cast<size_t>(slot_)].size.store(0, std::memory_order_release);
  if (--guards == 0) ::sigaction(SIGBUS, &previous, nullptr);
}

}  // namespace omnibus
