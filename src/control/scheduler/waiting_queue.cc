#include "waiting_queue.h"

#include "omnibus/base/common/check.h"

namespace omnibus {

void Scheduler::WaitingQueue::push(Sequence& s) {
  if (of_tenant_.size() < shares_->num_tenants()) of_tenant_.resize(shares_->num_tenants());
  Ordered& queue = s.place.in_turn ? of_tenant_[s.tenant] : passed_over_;
  if (s.place.in_turn && queue.empty()) shares_->queue_began(s.tenant);
  OMNIBUS_CHECK(queue.insert(&s).second, "a request waits once");
  ++size_;
}

void Scheduler::WaitingQueue::erase(Sequence& s) {
  Ordered& queue = s.place.in_turn ? of_tenant_[s.tenant] : passed_over_;
  OMNIBUS_CHECK(queue.erase(&s) == 1, "only a request that waits leaves the queue");
  if (s.place.in_turn && queue.empty()) shares_->queue_emptied(s.tenant);
  --size_;
}

Scheduler::Sequence* Scheduler::WaitingQueue::next() const {
  if (!passed_over_.empty()) return *passed_over_.begin();
  Sequence* best = nullptr;
  for (const Ordered& queue : of_tenant_) {
    if (queue.empty()) continue;
    Sequence* first = *queue.begin();
    if (best == nullptr) {
      best = first;
      continue;
    }
    const double gain = shares_->service(best->tenant) - shares_->service(first->tenant);
    if (gain > 0 || (gain == 0 && first->place < best->place)) best = first;
  }
  return best;
}

void Scheduler::WaitingQueue::count_passed_over(uint64_t last_admitted_arrival, int32_t limit) {
  std::vector<Sequence*> due;
  for (const Ordered& queue : of_tenant_) {
    for (Sequence* s : queue) {
      if (s->place.arrival > last_admitted_arrival) continue;
      if (++s->passed_over >= limit) due.push_back(s);
    }
  }
  for (Sequence* s : due) {
    erase(*s);
    s->place = {.in_turn = false, .priority = 0, .arrival = s->place.arrival};
    push(*s);
  }
}

std::vector<const Scheduler::Sequence*> Scheduler::WaitingQueue::all() const {
  std::vector<const Sequence*> all(passed_over_.begin(), passed_over_.end());
  for (const Ordered& queue : of_tenant_) all.insert(all.end(), queue.begin(), queue.end());
  return all;
}

}  // namespace omnibus
