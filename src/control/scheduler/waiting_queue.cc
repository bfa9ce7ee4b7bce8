#include "waiting_queue.h"

#include <algorithm>

#include "omnibus/base/common/check.h"

namespace omnibus {

void Scheduler::WaitingQueue::push(Sequence& s) { insert(s, true); }
void Scheduler::WaitingQueue::push_preempted(Sequence& s) { insert(s, false); }

void Scheduler::WaitingQueue::insert(Sequence& s, bool is_new) {
  if (of_tenant_.size() < shares_->num_tenants()) of_tenant_.resize(shares_->num_tenants());
  Ordered& queue = s.place.in_turn ? of_tenant_[s.tenant] : passed_over_;
  if (s.place.in_turn && queue.empty()) shares_->queue_began(s.tenant, is_new);
  OMNIBUS_CHECK(queue.insert(&s).second, "a request waits once");
  ++size_;
}

void Scheduler::WaitingQueue::erase(Sequence& s) {
  Ordered& queue = s.place.in_turn ? of_tenant_[s.tenant] : passed_over_;
  OMNIBUS_CHECK(queue.erase(&s) == 1, "only a request that waits leaves the queue");
  if (s.place.in_turn && queue.empty()) shares_->queue_emptied(s.tenant);
  --size_;
}

bool Scheduler::WaitingQueue::goes_before(const Sequence& a, const Sequence& b) const {
  if (a.place.in_turn && b.place.in_turn) {
    const double gain = shares_->service(b.tenant) - shares_->service(a.tenant);
    if (gain != 0) return gain > 0;
  }
  return a.place < b.place;
}

Scheduler::Sequence* Scheduler::WaitingQueue::next() const {
  if (!passed_over_.empty()) return *passed_over_.begin();
  Sequence* best = nullptr;
  for (const Ordered& queue : of_tenant_) {
    if (queue.empty()) continue;
    if (best == nullptr || goes_before(**queue.begin(), *best)) best = *queue.begin();
  }
  return best;
}

void Scheduler::WaitingQueue::count_passed_over(std::span<Sequence* const> admitted, int32_t limit) {
  uint64_t last = 0;  // arrival
  std::vector<uint64_t> last_of_tenant(of_tenant_.size());
  for (const Sequence* s : admitted) {
    last = std::max(last, s->place.arrival);
    last_of_tenant[s->tenant] = std::max(last_of_tenant[s->tenant], s->place.arrival);
  }
  std::vector<Sequence*> due;
  for (size_t tenant = 0; tenant < of_tenant_.size(); ++tenant) {
    uint64_t bound = last;  // for the first; the others compare with their own tenant's
    for (Sequence* s : of_tenant_[tenant]) {
      if (s->place.arrival < bound && ++s->passed_over >= limit) due.push_back(s);
      bound = last_of_tenant[tenant];
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
