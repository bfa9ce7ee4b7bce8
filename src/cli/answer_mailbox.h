// AnswerMailbox: the updates of one answer on their way from the engine to the terminal. A reader that is
// slower than the engine finds fewer and longer updates: none is lost, and the engine never waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "omnibus/contract/request/request_output.h"

namespace omnibus {

// Methods from any thread.
class AnswerMailbox {
 public:
  void put(RequestOutput output) {
    {
      std::lock_guard lock(mutex_);
      // All else of an update says how things stand now.
      if (waiting_) {
        output.text.insert(0, waiting_->text);
        output.reasoning.insert(0, waiting_->reasoning);
      }
      waiting_ = std::move(output);
    }
    ready_.notify_one();
  }

  // All that came since the last call, as one update; nullopt if nothing comes within `timeout`.
  std::optional<RequestOutput> take_for(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, timeout, [this] { return waiting_.has_value(); });
    return std::exchange(waiting_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<RequestOutput> waiting_;
};

}  // namespace omnibus
