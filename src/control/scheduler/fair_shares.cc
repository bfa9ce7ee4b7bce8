#include "fair_shares.h"

#include <algorithm>
#include <utility>

namespace omnibus {

size_t FairShares::tenant_of(const std::string& name) {
  const auto [it, is_new] = index_of_.try_emplace(config_.enabled ? name : std::string(), tenants_.size());
  if (is_new) {
    tenants_.emplace_back().weight = weight_of(it->first);
  }
  return it->second;
}

double FairShares::weight_of(const std::string& name) const {
  const auto weight = config_.weights.find(name);
  return weight == config_.weights.end() ? 1 : weight->second;
}

void FairShares::configure(FairSharing config) {
  config_ = std::move(config);
  for (const auto& [name, index] : index_of_) tenants_[index].weight = weight_of(name);
}

double FairShares::lowest_queued() const {
  double lowest = last_service_;
  bool any = false;
  for (const Tenant& other : tenants_) {
    if (!other.queued) continue;
    lowest = any ? std::min(lowest, other.service) : other.service;
    any = true;
  }
  return lowest;
}

void FairShares::queue_began(size_t tenant, bool with_new_work) {
  Tenant& t = tenants_[tenant];
  if (with_new_work) t.service = std::max(t.service, lowest_queued());
  t.queued = true;
}

void FairShares::queue_emptied(size_t tenant) {
  tenants_[tenant].queued = false;
  last_service_ = tenants_[tenant].service;
}

void FairShares::charge(size_t tenant, int32_t tokens) {
  tenants_[tenant].service += tokens / tenants_[tenant].weight;
}

}  // namespace omnibus
