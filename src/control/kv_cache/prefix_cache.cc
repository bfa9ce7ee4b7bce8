#include "omnibus/control/kv_cache/prefix_cache.h"

#include <algorithm>
#include <string>

#include "omnibus/base/common/check.h"

namespace omnibus {

PrefixCache::PrefixCache(int32_t num_blocks, int32_t tokens_per_block)
    : tokens_per_block_(static_cast<size_t>(tokens_per_block)),
      held_(static_cast<size_t>(num_blocks)),
      keys_(held_.size()),
      token_ids_(held_.size() * tokens_per_block_) {
  block_of_.reserve(held_.size());
}

std::span<const TokenId> PrefixCache::tokens_of(BlockId block) const {
  return std::span(token_ids_).subspan(static_cast<size_t>(block) * tokens_per_block_, tokens_per_block_);
}

std::optional<BlockId> PrefixCache::find(const Digest256& key, std::span<const TokenId> tokens) const {
  const auto it = block_of_.find(key);
  if (it == block_of_.end()) return std::nullopt;
  const auto stored = tokens_of(it->second);
  if (!std::equal(stored.begin(), stored.end(), tokens.begin(), tokens.end())) return std::nullopt;
  return it->second;
}

bool PrefixCache::insert(const Digest256& key, std::span<const TokenId> tokens, BlockId block) {
  OMNIBUS_CHECK(tokens.size() == tokens_per_block_, "only full blocks are cached");
  if (holds(block) || !block_of_.try_emplace(key, block).second) return false;
  const auto i = static_cast<size_t>(block);
  held_[i] = true;
  keys_[i] = key;
  std::copy(tokens.begin(), tokens.end(),
            token_ids_.begin() + static_cast<std::ptrdiff_t>(i * tokens_per_block_));
  return true;
}

void PrefixCache::erase(BlockId block) {
  if (!holds(block)) return;
  block_of_.erase(keys_[static_cast<size_t>(block)]);
  held_[static_cast<size_t>(block)] = false;
}

Status PrefixCache::check_integrity() const {
  size_t n = 0;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (!held_[i]) continue;
    ++n;
    const auto it = block_of_.find(keys_[i]);
    if (it == block_of_.end() || it->second != static_cast<BlockId>(i))
      return absl::InternalError("block " + std::to_string(i) + " is not found under its own key");
  }
  if (n == block_of_.size()) return absl::OkStatus();
  return absl::InternalError(std::to_string(block_of_.size()) + " keys lead to " + std::to_string(n) +
                             " blocks");
}

}  // namespace omnibus
