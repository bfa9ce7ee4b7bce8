// KVCacheManager: maps requests to KV blocks. One BlockTable per (request, group); groups whose blocks have
// one size share a pool. Pure bookkeeping: no memory, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/control/kv_cache/block_pool.h"
#include "omnibus/control/kv_cache/block_table.h"

namespace omnibus {

// What one request needs before its next step: room for all of these, counted from token 0.
struct SlotDemand {
  int32_t n_computed = 0;   // tokens whose KV is stored or already planned
  int32_t n_new = 0;        // tokens that the step computes
  int32_t n_lookahead = 0;  // slots for speculative tokens after them
  int32_t n_external = 0;   // tokens whose KV arrives from elsewhere (KV transfer), before the new ones

  int64_t tokens() const { return int64_t{n_computed} + n_external + n_new + n_lookahead; }
};

// Not thread-safe; the engine thread owns it.
class KVCacheManager {
 public:
  // INVALID_ARGUMENT names the bad group; UNIMPLEMENTED for recurrent state, which is not cut into blocks.
  static StatusOr<std::unique_ptr<KVCacheManager>> create(const KVCacheConfig& config);

  // Makes the request's tables large enough. The result is what was appended, per group (maybe nothing).
  // nullopt when a pool is too full: then nothing has changed.
  std::optional<std::vector<std::vector<BlockId>>> allocate_slots(RequestId id, const SlotDemand& demand);
  // Gives back every block of the request; unknown ids are ignored.
  void free(RequestId id);

  // Forgets every cached prefix; blocks that requests hold stay theirs and are not found again.
  void reset_prefix_cache() {}

  // True if a request of this many tokens fits when nothing else is stored.
  bool fits_alone(int64_t tokens) const;
  // The largest count for which fits_alone holds.
  int64_t capacity_tokens() const { return capacity_tokens_; }

  int32_t total_blocks() const;
  int32_t used_blocks() const;
  double usage() const;  // used / total of all pools, in [0, 1]
  bool holds(RequestId id) const { return tables_.count(id) != 0; }
  // The request's table in `group`; empty for an unknown id.
  std::vector<BlockId> blocks_of(RequestId id, size_t group) const;

  // Conservation law: used + free = total in each pool, and each block's reference count is the number of
  // tables that hold it. INTERNAL names the block.
  Status check_integrity() const;

 private:
  explicit KVCacheManager(const KVCacheConfig& config);
  std::vector<BlockTable> empty_tables() const;

  std::vector<KVGroupSpec> groups_;
  std::vector<size_t> pool_of_group_;
  std::vector<BlockPool> pools_;
  std::map<RequestId, std::vector<BlockTable>> tables_;
  int64_t capacity_tokens_ = 0;
};

}  // namespace omnibus
