// FairShares: how much each tenant has been served, and so whose turn it is. A virtual token counter (Sheng
// et al., "Fairness in Serving Large Language Models", OSDI 2024): serving n tokens raises a tenant's counter
// by n / weight, the lowest counter is next. A tenant whose queue was empty begins again at the lowest
// counter of those that wait: it owes nothing and has saved nothing up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "omnibus/control/scheduler/scheduler.h"

namespace omnibus {

class FairShares {
 public:
  explicit FairShares(FairSharing config) : config_(std::move(config)) {}

  // Holds for requests that come from now on; weights of known tenants at once. What was served stays served.
  void configure(FairSharing config);
  // The tenant's index; one and the same for all when sharing is off.
  size_t tenant_of(const std::string& name);
  size_t num_tenants() const { return tenants_.size(); }
  // More than one is known: also after sharing was switched off, while requests of the former tenants wait.
  bool several() const { return tenants_.size() > 1; }
  // Called with the first request that joins an empty queue of the tenant, and when its last has left. A
  // preempted request brings no new work: its tenant keeps its counter.
  void queue_began(size_t tenant, bool with_new_work);
  void queue_emptied(size_t tenant);
  void charge(size_t tenant, int32_t tokens);
  double service(size_t tenant) const { return tenants_[tenant].service; }

 private:
  double lowest_queued() const;
  struct Tenant {
    double weight = 1;
    double service = 0;  // tokens / weight
    bool queued = false;
  };
  double weight_of(const std::string& name) const;

  FairSharing config_;
  std::map<std::string, size_t> index_of_;
  std::vector<Tenant> tenants_;
  double last_service_ = 0;  // of the tenant whose queue emptied last
};

}  // namespace omnibus
