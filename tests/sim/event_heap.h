// EventHeap: what is to happen, ordered by (virtual time, order of posting). Nothing else decides the order
// of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "omnibus/base/common/clock.h"

namespace omnibus::sim {

struct Event {
  MonotonicNs at = 0;
  uint64_t seq = 0;
  const char* name = "";
  std::function<void()> run;
};

class EventHeap {
 public:
  void post(MonotonicNs at, const char* name, std::function<void()> run) {
    heap_.push({at, next_seq_++, name, std::move(run)});
  }
  bool empty() const { return heap_.empty(); }
  MonotonicNs next_at() const { return heap_.top().at; }
  Event pop() {
    Event event = heap_.top();
    heap_.pop();
    return event;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.seq > b.seq;
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> heap_;
  uint64_t next_seq_ = 0;
};

}  // namespace omnibus::sim
