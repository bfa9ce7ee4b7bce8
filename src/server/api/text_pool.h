// TextPool: the threads that parse, template and tokenise, so that connections' threads never do.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "omnibus/base/common/queue.h"

namespace omnibus {

class TextPool {
 public:
  TextPool(int threads, size_t capacity);
  // Finishes the queued jobs.
  ~TextPool();
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // False when the queue is full. Any thread.
  bool try_post(std::function<void()> job) { return jobs_.try_push(std::move(job)); }

 private:
  BoundedQueue<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace omnibus
