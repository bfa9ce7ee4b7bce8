#include "text_pool.h"

#include <algorithm>
#include <exception>

#include "omnibus/base/common/log.h"

namespace omnibus {
namespace {

// Whoever posted a job answers for what it throws; what comes through must not end the process.
void run(const std::function<void()>& job) {
  try {
    job();
  } catch (const std::exception& error) {
    log_error("a job of the text pool failed: {}", error.what());
  }
}

}  // namespace

TextPool::TextPool(int threads, size_t capacity) : jobs_(capacity) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    threads_.emplace_back([this] {
      while (auto job = jobs_.pop()) run(*job);
    });
  }
}

TextPool::~TextPool() {
  jobs_.close();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace omnibus
