// WeightLoader: from a StateDict to packed weights of one device, shard by shard: view, pack into the arena,
// give the pages of the source back. On kMeta only sizes are read, so that a load there is the plan of a real
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/loader/state_dict.h"
#include "omnibus/compute/ops/linear_weight.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

// A matrix [n, k] of the file and the part of it that this rank keeps. Exactly one of rows and columns may be
// a true part.
struct LinearSpec {
  std::string name;       // "blk.0.attn_q": ".weight" must exist, ".bias" is taken when it does
  int32_t n = 0, k = 0;   // in the file
  Range rows;             // of n
  Range columns;          // of k
  UnitCuts units;         // of the kept columns; empty: one chain
  bool with_bias = true;  // false: leave ".bias" to the caller (row-parallel: after the sum over ranks)
};

struct LoadStats {
  int64_t source_bytes = 0;                   // read from the file
  std::map<std::string, int32_t> type_count;  // matrices by file type, "Q4_1" -> 210
};

// One thread (compute thread 0).
class WeightLoader {
 public:
  using Progress = std::function<void(int64_t done, int64_t total)>;
  // All outlive the loader; what it returns lives as long as `allocator`.
  WeightLoader(StateDict& state, const OpContext& ctx, Allocator& allocator, Progress progress);

  // An empty share gives a weight with n = 0 or k = 0 and nothing packed.
  StatusOr<LinearWeight> linear(const LinearSpec& spec);
  // Floats of a vector of `elements` values of any float or block type, those in `range`. Null on kMeta.
  StatusOr<const float*> vector(std::string_view name, int64_t elements, Range range);
  bool has(std::string_view name) const { return state_.has(name); }
  StateDict& state() { return state_; }
  const LoadStats& stats() const { return stats_; }

 private:
  void done_with(const TensorView& tensor);
  bool on_meta() const { return ctx_.device.kind == DeviceKind::kMeta; }

  StateDict& state_;
  const OpContext& ctx_;
  Allocator& allocator_;
  Progress progress_;
  int64_t done_bytes_ = 0;
  LoadStats stats_;
};

}  // namespace omnibus
