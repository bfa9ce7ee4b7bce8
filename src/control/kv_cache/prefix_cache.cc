#include "omnibus/control/kv_cache/prefix_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus {

PrefixCache::PrefixCache(int32_t num_blocks, int32_t tokens_per_block)
    : tokens_per_block_(static_cast<size_t>(tokens_per_block)),
      entries_(static_cast<size_t>(num_blocks)),
      token_ids_(entries_.size() * tokens_per_block_) {
  block_of_.reserve(entries_.size());
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
  if (entry(block).role != Role::kNone) return false;
  const auto [it, is_new] = block_of_.try_emplace(key, block);
  if (!is_new && !find(key, tokens)) return false;
  Entry& e = entry(block);
  e.role = is_new ? Role::kFound : Role::kCopy;
  e.key = key;
  std::copy(tokens.begin(), tokens.end(),
            token_ids_.begin() + block * static_cast<std::ptrdiff_t>(tokens_per_block_));
  if (is_new) return true;
  e.before = it->second;
  e.next = std::exchange(entry(it->second).next, block);
  if (e.next != kNone) entry(e.next).before = block;
  return false;
}

std::optional<BlockId> PrefixCache::erase(BlockId block) {
  const Entry gone = std::exchange(entry(block), Entry{});
  if (gone.role == Role::kNone) return std::nullopt;
  if (gone.before != kNone) entry(gone.before).next = gone.next;
  if (gone.next != kNone) entry(gone.next).before = gone.before;
  if (gone.role == Role::kCopy) return std::nullopt;
  if (gone.next == kNone) {
    block_of_.erase(gone.key);
    return std::nullopt;
  }
  block_of_.at(gone.key) = gone.next;
  entry(gone.next).role = Role::kFound;
  return gone.next;
}

void PrefixCache::clear() {
  block_of_.clear();
  std::fill(entries_.begin(), entries_.end(), Entry{});
}

Status PrefixCache::check_integrity() const {
  const auto broken = [](BlockId block, const std::string& what) {
    return absl::InternalError("block " + std::to_string(block) + " " + what);
  };
  size_t found = 0;
  size_t listed = 0;
  for (BlockId first = 0; first < static_cast<BlockId>(entries_.size()); ++first) {
    if (!holds(first)) continue;
    const Digest256& key = entry(first).key;
    const auto it = block_of_.find(key);
    if (it == block_of_.end() || it->second != first) return broken(first, "is not where its key leads");
    ++found;
    BlockId before = kNone;
    for (BlockId block = first; block != kNone; block = entry(block).next) {
      const Entry& e = entry(block);
      if (e.role != (block == first ? Role::kFound : Role::kCopy) || e.before != before || e.key != key)
        return broken(block, "is out of place in the list of its key");
      before = block;
      ++listed;
    }
  }
  const auto with_key =
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.role != Role::kNone; });
  if (listed == static_cast<size_t>(with_key) && found == block_of_.size()) return absl::OkStatus();
  return absl::InternalError(std::to_string(block_of_.size()) + " keys, of which " + std::to_string(found) +
                             " have a block, lead to " + std::to_string(listed) + " of " +
                             std::to_string(with_key) + " blocks that have a key");
}

}  // namespace omnibus
