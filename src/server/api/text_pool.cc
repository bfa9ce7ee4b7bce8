#include "text_pool.h"

#include <algorithm>

namespace omnibus {

TextPool::TextPool(int threads, size_t capacity) : jobs_(capacity) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    threads_.emplace_back([this] {
      while (auto job = jobs_.pop()) (*job)();
    });
  }
}

TextPool::~TextPool() {
  jobs_.close();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace omnibus
