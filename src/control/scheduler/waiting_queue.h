// WaitingQueue: requests that wait for admission, and which of them is next. Whose turn it is, waiting or
// running: those that were passed over too often, in order of arrival; then of the tenant that has been
// served least the first in the policy's order.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "fair_shares.h"
#include "sequence.h"

namespace omnibus {

class Scheduler::WaitingQueue {
 public:
  // `shares` outlives the queue.
  explicit WaitingQueue(FairShares* shares) : shares_(shares) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void push(Sequence& sequence);  // a new request
  void push_preempted(Sequence& sequence);
  void erase(Sequence& sequence);
  // nullptr when nobody waits.
  Sequence* next() const;
  // Is it a's turn before b's? Changes with what their tenants are served.
  bool goes_before(const Sequence& a, const Sequence& b) const;
  // One round is over, in which these were admitted. A request that still waits has been passed over when one
  // of them came later and is of its tenant, or it is its tenant's next: behind others of its own it waits
  // for them. Those that have been passed over `limit` times go first from now on.
  void count_passed_over(std::span<Sequence* const> admitted, int32_t limit);
  // In no particular order, but always the same.
  std::vector<const Sequence*> all() const;

 private:
  struct Before {
    bool operator()(const Sequence* a, const Sequence* b) const { return a->place < b->place; }
  };
  using Ordered = std::set<Sequence*, Before>;

  void insert(Sequence& sequence, bool is_new);

  FairShares* const shares_;
  Ordered passed_over_;
  std::vector<Ordered> of_tenant_;
  size_t size_ = 0;
};

}  // namespace omnibus
