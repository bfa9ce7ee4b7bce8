#include "log_writer.h"

#include <cerrno>
#include <csignal>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace omnibus {
namespace {

constexpr size_t kBatchBytes = 64 * 1024;
// Where there is no memory for a batch.
constexpr auto kMemoryPause = std::chrono::milliseconds(100);

// What cannot be written is lost: a full disk, or a reader that is gone, is no reason to stop or to wait.
void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (n == 0 || errno != EINTR) {
      return;
    }
  }
}

}  // namespace

LogWriter::LogWriter(int fd, size_t max_bytes, std::function<std::string(int64_t)> gap_line)
    : fd_(fd), max_bytes_(max_bytes), gap_line_(std::move(gap_line)) {
  // Signals are for the program's own threads; SIGPIPE is an error of write() then.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    thread_ = {};
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

LogWriter::~LogWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (has_thread()) thread_.join();
}

void LogWriter::put(std::string line) {
  line += '\n';
  std::unique_lock lock(mutex_);
  if (!has_thread()) {
    write_all(fd_, line);
    return;
  }
  const size_t size = line.size();
  queue_.push_back(std::move(line));
  queued_bytes_ += size;  // not before it is there: there may be no memory for it
  ++put_;
  while (queued_bytes_ > max_bytes_) drop_oldest();
  lock.unlock();
  work_.notify_one();
}

bool LogWriter::flush(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const int64_t target = put_;
  return written_.wait_for(lock, limit, [&] { return done_ >= target && unreported_ == 0; });
}

int64_t LogWriter::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

void LogWriter::drop_oldest() {
  queued_bytes_ -= queue_.front().size();
  queue_.pop_front();
  ++done_;
  ++dropped_;
  ++unreported_;
}

std::string LogWriter::take_batch() {
  std::string batch;
  if (unreported_ > 0) batch = gap_line_(unreported_) + '\n';
  size_t size = batch.size(), lines = 0;
  while (lines < queue_.size() && (size == 0 || size + queue_[lines].size() <= kBatchBytes)) {
    size += queue_[lines++].size();
  }
  batch.reserve(size);
  unreported_ = 0;
  for (; lines > 0; --lines) {
    batch += queue_.front();
    queued_bytes_ -= queue_.front().size();
    queue_.pop_front();
  }
  return batch;
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty() || unreported_ > 0; });
    if (queue_.empty() && unreported_ == 0) return;
    const size_t before = queue_.size();
    std::string batch;
    try {
      batch = take_batch();
    } catch (const std::bad_alloc&) {
      while (!queue_.empty()) drop_oldest();
      work_.wait_for(lock, kMemoryPause, [&] { return stopping_; });
      if (stopping_) return;
      continue;
    }
    const auto lines = static_cast<int64_t>(before - queue_.size());
    lock.unlock();
    write_all(fd_, batch);
    lock.lock();
    done_ += lines;
    written_.notify_all();
  }
}

}  // namespace omnibus
