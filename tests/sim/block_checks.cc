#include "block_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace omnibus::sim {

void BlockChecks::check() {
  count_holders();
  judge_tables_of_the_rest();
  judge_pools();
}

void BlockChecks::count_holders() {
  holders_.assign(worker_->num_pools(), std::vector<int32_t>(static_cast<size_t>(scenario_.kv.num_blocks)));
  const KVCacheManager& kv = scheduler_->kv();
  for (RequestId id : clients_->open()) {
    const auto it = worker_->mirrors().find(id);
    if (it == worker_->mirrors().end()) continue;
    // Preempted by a plan that came to nothing, of which workers hear with the next.
    if (!kv.holds(id)) continue;
    for (size_t g = 0; g < it->second.tables.size(); ++g) {
      if (kv.blocks_of(id, g) != it->second.tables[g])
        verdict_->fail("I2", fmt::format("request {}'s table of group {} is not what the plans said", id, g));
      for (BlockId block : it->second.tables[g]) ++holders_[worker_->pool_of(g)][static_cast<size_t>(block)];
    }
  }
}

void BlockChecks::judge_tables_of_the_rest() {
  const KVCacheManager& kv = scheduler_->kv();
  for (const auto& [id, choice] : clients_->choices()) {
    if (!kv.holds(id)) continue;
    if (choice.is_ended) {
      verdict_->fail("I2", fmt::format("request {} has ended, but holds blocks", id));
    } else if (worker_->mirrors().count(id) == 0) {
      verdict_->fail("I2", fmt::format("request {} waits, but holds blocks", id));
    }
  }
}

void BlockChecks::judge_pools() {
  const KVCacheManager& kv = scheduler_->kv();
  int32_t held = 0;
  int32_t may_be_cached = 0;
  for (size_t p = 0; p < holders_.size(); ++p) {
    for (size_t b = 0; b < holders_[p].size(); ++b) {
      const auto id = static_cast<BlockId>(b);
      if (holders_[p][b] > 0) ++held;
      if (holders_[p][b] == 0 && worker_->is_full(p, id)) ++may_be_cached;
      const int32_t refs = kv.ref_count(p, id);
      if (refs != holders_[p][b])
        verdict_->fail("I2", fmt::format("block {} of pool {} has reference count {}, but {} tables hold it",
                                         b, p, refs, holders_[p][b]));
    }
  }
  if (kv.used_blocks() != held)
    verdict_->fail("I1", fmt::format("{} blocks count as used, but tables hold {}", kv.used_blocks(), held));
  if (kv.cached_blocks() > may_be_cached)
    verdict_->fail("I1", fmt::format("{} blocks count as cached, but only {} are full and held by nobody",
                                     kv.cached_blocks(), may_be_cached));
  if (kv.used_blocks() + kv.cached_blocks() + kv.free_blocks() != kv.total_blocks() || kv.free_blocks() < 0 ||
      kv.total_blocks() != static_cast<int32_t>(holders_.size()) * scenario_.kv.num_blocks)
    verdict_->fail("I1", fmt::format("{} used, {} cached and {} free blocks are not {}", kv.used_blocks(),
                                     kv.cached_blocks(), kv.free_blocks(), kv.total_blocks()));
}

}  // namespace omnibus::sim
