// KVCacheManager: maps requests to KV blocks. One BlockTable per (request, group); groups whose blocks have
// one size share a pool. Full blocks of computed tokens are published in their group's PrefixCache, and a new
// request whose prompt begins alike shares them by reference count. Pure bookkeeping: no memory, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/sha256.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/control/kv_cache/block_pool.h"
#include "omnibus/control/kv_cache/block_table.h"
#include "omnibus/control/kv_cache/prefix_cache.h"

namespace omnibus {

// Blocks by KV group; no groups at all when there are no blocks.
using GroupBlocks = std::vector<std::vector<BlockId>>;

// What one request needs before its next step: room for all of these, counted from token 0.
struct SlotDemand {
  int32_t n_computed = 0;   // tokens whose KV is stored or already planned
  int32_t n_new = 0;        // tokens that the step computes
  int32_t n_lookahead = 0;  // slots for speculative tokens after them
  int32_t n_external = 0;   // tokens whose KV arrives from elsewhere (KV transfer), before the new ones

  int64_t tokens() const { return int64_t{n_computed} + n_external + n_new + n_lookahead; }
};

// The beginning of a request, as the prefix cache knows it.
struct KeyedTokens {
  std::span<const TokenId> tokens;
  std::span<const Digest256> keys;  // of its first stretches of tokens_per_key() tokens (block_key.h)
};

// Blocks that hold the KV of a request's first tokens already. Nobody holds them until allocate_slots() takes
// them over: a result is good until the next call that changes the manager.
struct ComputedBlocks {
  int32_t n_tokens = 0;
  GroupBlocks blocks;
};

// Not thread-safe; the engine thread owns it.
class KVCacheManager {
 public:
  // INVALID_ARGUMENT names the bad group; UNIMPLEMENTED for recurrent state, which is not cut into blocks.
  static StatusOr<std::unique_ptr<KVCacheManager>> create(const KVCacheConfig& config);

  // The longest prefix of at most `max_tokens` that is found in every group: whole blocks in each, and cut
  // where a prefill may be cut.
  ComputedBlocks get_computed_blocks(const KeyedTokens& prefix, int64_t max_tokens) const;
  // Makes the request's tables large enough. A new request's begin with `computed`, which is shared, not
  // copied. The result is what was appended, `computed` included. nullopt when a pool is too full: then
  // nothing has changed. Cached blocks of others are overwritten when no free ones are left.
  std::optional<GroupBlocks> allocate_slots(RequestId id, const SlotDemand& demand,
                                            const ComputedBlocks& computed = {});
  // The KV of the request's first `n_tokens` tokens is stored: what is full of its blocks can be found.
  // Of blocks with the same content one is found, and one that a request holds before one that nobody does:
  // no eviction loses what a request still has.
  void publish(RequestId id, const KeyedTokens& prefix, int64_t n_tokens);
  // Gives back every block of the request, the last first, so that of what stays cached the beginnings live
  // longest. Unknown ids are ignored.
  void free(RequestId id);

  // Forgets every cached prefix; blocks that requests hold stay theirs, are not found again, and those
  // requests publish nothing more.
  void reset_prefix_cache();

  // A count that grows with what becomes free to take or can be found, in blocks. After a refusal no demand
  // of that request can be met before it has reached retry_at(), so that nobody need look.
  int64_t gains() const { return gains_; }
  int64_t retry_at() const { return retry_at_; }

  // True if a request of this many tokens fits when nothing else is in use.
  bool fits_alone(int64_t tokens) const;
  // The largest count for which fits_alone holds.
  int64_t capacity_tokens() const { return capacity_tokens_; }
  // Tokens from one block key to the next: divides every group's block.
  int32_t tokens_per_key() const { return tokens_per_key_; }

  int32_t total_blocks() const;
  int32_t used_blocks() const;    // held by requests
  int32_t cached_blocks() const;  // held by nobody, but can be found; free to take
  int32_t free_blocks() const { return total_blocks() - used_blocks() - cached_blocks(); }
  double usage() const;  // used / total of all pools, in [0, 1]
  // Tables that hold the block, by the pool's count. Pools are numbered as their groups first name them.
  int32_t ref_count(size_t pool, BlockId id) const { return pools_.at(pool).ref_count(id); }
  bool holds(RequestId id) const { return tables_.count(id) != 0; }
  size_t num_tables() const { return tables_.size(); }  // requests that hold blocks
  // The request's table in `group`; empty for an unknown id.
  std::vector<BlockId> blocks_of(RequestId id, size_t group) const;
  // Tokens that the request's tables can hold; 0 for an unknown id.
  int64_t slots_of(RequestId id) const;
  // Tokens of the request that can be found, in the group where they are most; 0 for an unknown id.
  int64_t published_tokens(RequestId id) const;

  // Conservation law: used + free + cached = total in each pool, each block's reference count is the number
  // of tables that hold it, it can be found exactly when one group's prefix cache has it, and nobody's block
  // has copies or is one. INTERNAL names the block.
  Status check_integrity() const;

 private:
  struct Tables {
    std::vector<BlockTable> of_group;
    std::vector<size_t> published;  // blocks per group that were shared or published: the first ones
    bool may_publish = true;
  };
  explicit KVCacheManager(const KVCacheConfig& config);
  Tables fresh_tables(const ComputedBlocks& computed) const;
  bool has_room(const Tables& tables, const SlotDemand& demand, const ComputedBlocks& computed);
  BlockId take_block(size_t pool);
  void publish_block(size_t group, const Digest256& key, std::span<const TokenId> tokens, BlockId block);
  void prefer_held(size_t group, BlockId released);
  Status check_ref_counts() const;
  Status check_findable() const;
  Status check_copies() const;

  std::vector<KVGroupSpec> groups_;
  std::vector<size_t> pool_of_group_;
  std::vector<BlockPool> pools_;
  std::vector<PrefixCache> caches_;  // by group
  std::map<RequestId, Tables> tables_;
  int64_t capacity_tokens_ = 0;
  int32_t tokens_per_key_ = 1;
  int64_t prefix_unit_ = 1;      // tokens; a shared prefix is a multiple of this
  int64_t blocks_per_unit_ = 1;  // that a prefix unit takes in one pool, at most
  int64_t gains_ = 0;
  int64_t retry_at_ = 0;
  std::vector<int64_t> wanted_;  // scratch of has_room(), by pool
};

}  // namespace omnibus
