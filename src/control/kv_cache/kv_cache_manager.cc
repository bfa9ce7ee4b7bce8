#include "omnibus/control/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

Status check_config(const KVCacheConfig& config) {
  if (config.groups.empty()) return absl::InvalidArgumentError("a KV cache needs at least one group");
  if (config.num_blocks <= 0)
    return absl::InvalidArgumentError("a KV cache needs at least one block, not " +
                                      std::to_string(config.num_blocks));
  for (size_t g = 0; g < config.groups.size(); ++g) {
    const KVGroupSpec& group = config.groups[g];
    const std::string name = "KV group " + std::to_string(g);
    if (group.tokens_per_block <= 0)
      return absl::InvalidArgumentError(name + ": tokens_per_block must be positive, not " +
                                        std::to_string(group.tokens_per_block));
    if (group.chunk_alignment <= 0)
      return absl::InvalidArgumentError(name + ": chunk_alignment must be positive, not " +
                                        std::to_string(group.chunk_alignment));
    if (group.kind == KVGroupKind::kRecurrent)
      return absl::UnimplementedError(name + ": recurrent state is not supported");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<KVCacheManager>> KVCacheManager::create(const KVCacheConfig& config) {
  OMNIBUS_RETURN_IF_ERROR(check_config(config));
  return std::unique_ptr<KVCacheManager>(new KVCacheManager(config));
}

KVCacheManager::KVCacheManager(const KVCacheConfig& config) : groups_(config.groups) {
  std::vector<int64_t> sizes;
  for (const KVGroupSpec& group : groups_) {
    size_t pool = 0;
    while (pool < sizes.size() && sizes[pool] != group.bytes_per_block) ++pool;
    if (pool == sizes.size()) {
      sizes.push_back(group.bytes_per_block);
      pools_.emplace_back(config.num_blocks);
    }
    pool_of_group_.push_back(pool);
    caches_.emplace_back(config.num_blocks, group.tokens_per_block);
    tokens_per_key_ = std::gcd(caches_.size() == 1 ? 0 : tokens_per_key_, group.tokens_per_block);
    prefix_unit_ = std::lcm(prefix_unit_, int64_t{group.tokens_per_block});
    prefix_unit_ = std::lcm(prefix_unit_, int64_t{group.chunk_alignment});
  }
  wanted_.resize(pools_.size());
  for (size_t g = 0; g < groups_.size(); ++g)
    wanted_[pool_of_group_[g]] += prefix_unit_ / groups_[g].tokens_per_block;
  blocks_per_unit_ = *std::max_element(wanted_.begin(), wanted_.end());
  int64_t low = 0;  // fits
  int64_t high = 1;
  while (fits_alone(high)) high *= 2;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits_alone(middle) ? low : high) = middle;
  }
  capacity_tokens_ = low;
}

ComputedBlocks KVCacheManager::get_computed_blocks(const KeyedTokens& prefix, int64_t max_tokens) const {
  const auto keyed = static_cast<int64_t>(prefix.keys.size()) * tokens_per_key_;
  int64_t n_tokens = std::min({max_tokens, keyed, static_cast<int64_t>(prefix.tokens.size())});
  ComputedBlocks found;
  found.blocks.resize(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t per_block = groups_[g].tokens_per_block;
    std::vector<BlockId>& blocks = found.blocks[g];
    for (int64_t end = per_block; end <= n_tokens; end += per_block) {
      const auto block = caches_[g].find(
          prefix.keys[static_cast<size_t>(end / tokens_per_key_ - 1)],
          prefix.tokens.subspan(static_cast<size_t>(end - per_block), static_cast<size_t>(per_block)));
      if (!block) break;
      blocks.push_back(*block);
    }
    n_tokens = static_cast<int64_t>(blocks.size()) * per_block / prefix_unit_ * prefix_unit_;
  }
  if (n_tokens == 0) return {};
  for (size_t g = 0; g < groups_.size(); ++g)
    found.blocks[g].resize(static_cast<size_t>(n_tokens / groups_[g].tokens_per_block));
  found.n_tokens = static_cast<int32_t>(n_tokens);
  return found;
}

KVCacheManager::Tables KVCacheManager::fresh_tables(const ComputedBlocks& computed) const {
  Tables tables;
  for (size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = tables.of_group.emplace_back(groups_[g].tokens_per_block);
    if (computed.n_tokens > 0)
      for (BlockId id : computed.blocks[g]) table.append(id);
    tables.published.push_back(table.blocks().size());
  }
  return tables;
}

// A cached block that is about to be shared is no longer there to be taken.
bool KVCacheManager::has_room(const Tables& tables, const SlotDemand& demand,
                              const ComputedBlocks& computed) {
  std::fill(wanted_.begin(), wanted_.end(), 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    int64_t& wanted = wanted_[pool_of_group_[g]];
    wanted += tables.of_group[g].missing_for(demand.tokens());
    if (computed.n_tokens == 0) continue;
    for (BlockId id : computed.blocks[g]) wanted += pools_[pool_of_group_[g]].ref_count(id) == 0 ? 1 : 0;
  }
  int64_t lacking = 0;
  for (size_t p = 0; p < pools_.size(); ++p) lacking = std::max(lacking, wanted_[p] - pools_[p].available());
  retry_at_ = gains_ + lacking;
  return lacking == 0;
}

BlockId KVCacheManager::take_block(size_t pool) {
  const auto taken = pools_[pool].take();
  OMNIBUS_CHECK(taken.has_value(), "the pool was counted before");
  if (taken->was_cached)
    for (size_t g = 0; g < groups_.size(); ++g)
      if (pool_of_group_[g] == pool) caches_[g].erase(taken->id);
  return taken->id;
}

std::optional<GroupBlocks> KVCacheManager::allocate_slots(RequestId id, const SlotDemand& demand,
                                                          const ComputedBlocks& computed) {
  auto known = tables_.find(id);
  if (known == tables_.end()) {
    Tables fresh = fresh_tables(computed);
    if (!has_room(fresh, demand, computed)) return std::nullopt;
    known = tables_.emplace(id, std::move(fresh)).first;
    if (computed.n_tokens > 0)
      for (size_t g = 0; g < groups_.size(); ++g)
        for (BlockId block : computed.blocks[g]) pools_[pool_of_group_[g]].add_ref(block);
  } else {
    OMNIBUS_CHECK(computed.n_tokens == 0, "a table that has begun cannot begin again");
    if (!has_room(known->second, demand, computed)) return std::nullopt;
  }
  GroupBlocks added = computed.blocks;
  for (size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = known->second.of_group[g];
    const int32_t missing = table.missing_for(demand.tokens());
    if (missing == 0) continue;
    added.resize(groups_.size());
    for (int32_t i = 0; i < missing; ++i) {
      added[g].push_back(take_block(pool_of_group_[g]));
      table.append(added[g].back());
    }
  }
  return added;
}

void KVCacheManager::publish(RequestId id, const KeyedTokens& prefix, int64_t n_tokens) {
  const auto it = tables_.find(id);
  OMNIBUS_CHECK(it != tables_.end(), "only a request with blocks can publish them");
  if (!it->second.may_publish) return;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto per_block = static_cast<size_t>(groups_[g].tokens_per_block);
    const std::vector<BlockId>& blocks = it->second.of_group[g].blocks();
    for (size_t& i = it->second.published[g]; (i + 1) * per_block <= static_cast<size_t>(n_tokens); ++i) {
      const Digest256& key = prefix.keys[(i + 1) * per_block / static_cast<size_t>(tokens_per_key_) - 1];
      publish_block(g, key, prefix.tokens.subspan(i * per_block, per_block), blocks[i]);
    }
  }
}

void KVCacheManager::publish_block(size_t g, const Digest256& key, std::span<const TokenId> tokens,
                                   BlockId block) {
  PrefixCache& cache = caches_[g];
  if (cache.insert(key, tokens, block)) {
    pools_[pool_of_group_[g]].set_findable(block);
    // A group's chain of blocks has no holes, so that one more makes a prefix one unit longer at most.
    gains_ += blocks_per_unit_;
  } else if (cache.is_copy(block)) {
    prefer_held(g, *cache.find(key, tokens));
  }
}

// After the last holder of a block has gone, or a copy of one that nobody holds has come.
void KVCacheManager::prefer_held(size_t g, BlockId released) {
  BlockPool& pool = pools_[pool_of_group_[g]];
  PrefixCache& cache = caches_[g];
  if (pool.ref_count(released) > 0 || (cache.holds(released) && !cache.has_copies(released))) return;
  const std::optional<BlockId> held = cache.erase(released);
  if (!held) return;  // a copy, free now
  pool.forget(released);
  pool.set_findable(*held);
  ++gains_;  // whoever shares it takes nothing from those that are cached
}

void KVCacheManager::free(RequestId id) {
  const auto it = tables_.find(id);
  if (it == tables_.end()) return;
  for (size_t g = 0; g < groups_.size(); ++g) {
    BlockPool& pool = pools_[pool_of_group_[g]];
    const auto& blocks = it->second.of_group[g].blocks();
    gains_ -= pool.available();
    for (size_t i = blocks.size(); i-- > 0;) {
      pool.release(blocks[i]);
      prefer_held(g, blocks[i]);
    }
    gains_ += pool.available();
  }
  tables_.erase(it);
}

void KVCacheManager::reset_prefix_cache() {
  for (size_t g = 0; g < groups_.size(); ++g) {
    BlockPool& pool = pools_[pool_of_group_[g]];
    for (BlockId id = 0; id < pool.total(); ++id)
      if (caches_[g].holds(id)) pool.forget(id);
    caches_[g].clear();
  }
  // What they hold was computed before the reset, whatever the reason for it was.
  for (auto& [id, tables] : tables_) tables.may_publish = false;
}

bool KVCacheManager::fits_alone(int64_t tokens) const {
  std::vector<int64_t> needed(pools_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t per_block = groups_[g].tokens_per_block;
    needed[pool_of_group_[g]] += (tokens + per_block - 1) / per_block;
  }
  for (size_t p = 0; p < pools_.size(); ++p)
    if (needed[p] > pools_[p].total()) return false;
  return true;
}

int32_t KVCacheManager::total_blocks() const {
  int32_t n = 0;
  for (const BlockPool& pool : pools_) n += pool.total();
  return n;
}

int32_t KVCacheManager::used_blocks() const {
  int32_t n = 0;
  for (const BlockPool& pool : pools_) n += pool.used_count();
  return n;
}

int32_t KVCacheManager::cached_blocks() const {
  int32_t n = 0;
  for (const BlockPool& pool : pools_) n += pool.cached_count();
  return n;
}

double KVCacheManager::usage() const { return static_cast<double>(used_blocks()) / total_blocks(); }

std::vector<BlockId> KVCacheManager::blocks_of(RequestId id, size_t group) const {
  const auto it = tables_.find(id);
  return it == tables_.end() ? std::vector<BlockId>() : it->second.of_group.at(group).blocks();
}

int64_t KVCacheManager::slots_of(RequestId id) const {
  const auto it = tables_.find(id);
  if (it == tables_.end()) return 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const BlockTable& table : it->second.of_group) least = std::min(least, table.capacity_tokens());
  return least;
}

int64_t KVCacheManager::published_tokens(RequestId id) const {
  const auto it = tables_.find(id);
  int64_t most = 0;
  if (it != tables_.end())
    for (size_t g = 0; g < groups_.size(); ++g)
      most = std::max(most, static_cast<int64_t>(it->second.published[g]) * groups_[g].tokens_per_block);
  return most;
}

Status KVCacheManager::check_ref_counts() const {
  std::vector<std::vector<int32_t>> holders;
  for (const BlockPool& pool : pools_) holders.emplace_back(static_cast<size_t>(pool.total()));
  for (const auto& [id, tables] : tables_)
    for (size_t g = 0; g < groups_.size(); ++g)
      for (BlockId block : tables.of_group[g].blocks())
        ++holders[pool_of_group_[g]][static_cast<size_t>(block)];
  for (size_t p = 0; p < pools_.size(); ++p) {
    for (size_t b = 0; b < holders[p].size(); ++b) {
      const int32_t refs = pools_[p].ref_count(static_cast<BlockId>(b));
      if (refs == holders[p][b]) continue;
      return absl::InternalError("block " + std::to_string(b) + " of pool " + std::to_string(p) + ": " +
                                 std::to_string(refs) + " references, held by " +
                                 std::to_string(holders[p][b]) + " tables");
    }
  }
  return absl::OkStatus();
}

Status KVCacheManager::check_findable() const {
  for (size_t p = 0; p < pools_.size(); ++p) {
    for (BlockId id = 0; id < pools_[p].total(); ++id) {
      int32_t caches = 0;
      for (size_t g = 0; g < groups_.size(); ++g)
        if (pool_of_group_[g] == p && caches_[g].holds(id)) ++caches;
      if (caches == (pools_[p].is_findable(id) ? 1 : 0)) continue;
      return absl::InternalError("block " + std::to_string(id) + " of pool " + std::to_string(p) + " is in " +
                                 std::to_string(caches) + " prefix caches");
    }
  }
  return absl::OkStatus();
}

Status KVCacheManager::check_copies() const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const size_t p = pool_of_group_[g];
    for (BlockId id = 0; id < pools_[p].total(); ++id) {
      if (pools_[p].ref_count(id) > 0 || !(caches_[g].is_copy(id) || caches_[g].has_copies(id))) continue;
      return absl::InternalError("block " + std::to_string(id) + " of pool " + std::to_string(p) +
                                 " is held by nobody, but is or has a copy");
    }
  }
  return absl::OkStatus();
}

Status KVCacheManager::check_integrity() const {
  for (const BlockPool& pool : pools_) OMNIBUS_RETURN_IF_ERROR(pool.check_integrity());
  for (const PrefixCache& cache : caches_) OMNIBUS_RETURN_IF_ERROR(cache.check_integrity());
  OMNIBUS_RETURN_IF_ERROR(check_ref_counts());
  OMNIBUS_RETURN_IF_ERROR(check_findable());
  return check_copies();
}

}  // namespace omnibus
