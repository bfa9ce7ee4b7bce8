#include "omnibus/control/kv_cache/kv_cache_manager.h"

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
  }
  int64_t low = 0;  // fits
  int64_t high = 1;
  while (fits_alone(high)) high *= 2;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits_alone(middle) ? low : high) = middle;
  }
  capacity_tokens_ = low;
}

std::vector<BlockTable> KVCacheManager::empty_tables() const {
  std::vector<BlockTable> tables;
  for (const KVGroupSpec& group : groups_) tables.emplace_back(group.tokens_per_block);
  return tables;
}

std::optional<std::vector<std::vector<BlockId>>> KVCacheManager::allocate_slots(RequestId id,
                                                                                const SlotDemand& demand) {
  const auto known = tables_.find(id);
  std::vector<BlockTable> fresh;
  if (known == tables_.end()) fresh = empty_tables();
  std::vector<BlockTable>& tables = known == tables_.end() ? fresh : known->second;

  // Plan first: only a demand that all pools can meet changes anything.
  std::vector<int32_t> missing;
  std::vector<int64_t> from_pool(pools_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    missing.push_back(tables[g].missing_for(demand.tokens()));
    from_pool[pool_of_group_[g]] += missing[g];
  }
  for (size_t p = 0; p < pools_.size(); ++p)
    if (from_pool[p] > pools_[p].free_count()) return std::nullopt;

  std::vector<std::vector<BlockId>> added(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (int32_t i = 0; i < missing[g]; ++i) {
      const std::optional<BlockId> block = pools_[pool_of_group_[g]].take();
      OMNIBUS_CHECK(block.has_value(), "the pool was counted before");
      tables[g].append(*block);
      added[g].push_back(*block);
    }
  }
  if (known == tables_.end()) tables_.emplace(id, std::move(fresh));
  return added;
}

void KVCacheManager::free(RequestId id) {
  const auto it = tables_.find(id);
  if (it == tables_.end()) return;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto& blocks = it->second[g].blocks();
    for (size_t i = blocks.size(); i-- > 0;) pools_[pool_of_group_[g]].release(blocks[i]);
  }
  tables_.erase(it);
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

double KVCacheManager::usage() const { return static_cast<double>(used_blocks()) / total_blocks(); }

std::vector<BlockId> KVCacheManager::blocks_of(RequestId id, size_t group) const {
  const auto it = tables_.find(id);
  return it == tables_.end() ? std::vector<BlockId>() : it->second.at(group).blocks();
}

Status KVCacheManager::check_integrity() const {
  std::vector<std::vector<int32_t>> holders;
  for (const BlockPool& pool : pools_) {
    OMNIBUS_RETURN_IF_ERROR(pool.check_integrity());
    holders.emplace_back(static_cast<size_t>(pool.total()));
  }
  for (const auto& [id, tables] : tables_)
    for (size_t g = 0; g < groups_.size(); ++g)
      for (BlockId block : tables[g].blocks()) ++holders[pool_of_group_[g]][static_cast<size_t>(block)];
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

}  // namespace omnibus
