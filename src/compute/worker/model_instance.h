// ModelInstance: one model on one device: threads, op context, arenas, weights and KV cache. What a worker,
// and the evaluation program, run steps on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/core/compute_pool.h"
#include "omnibus/compute/models/model.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/contract/step/scheduler_output.h"
#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

struct InstanceSpec {
  std::shared_ptr<const GgufFile> file;
  ModelConfig config;
  ParallelContext parallel;
  Device device;
  Numerics numerics = Numerics::kFast;
  CpuIsa cpu_isa = CpuIsa::kAuto;
  int32_t threads = 0;  // this and all sizes below are resolved, > 0
  int32_t max_model_len = 0;
  int32_t max_rows = 0;
  int32_t max_head_rows = 0;
};

// From shapes alone: a load on the meta device.
struct InstanceBytes {
  int64_t weights = 0, scratch = 0;
  std::string weights_note;         // "210 x Q4_1, 1 x Q8_0"
  std::vector<KVGroupSpec> groups;  // bytes_per_block filled in
  int64_t kv_block() const {        // of all groups together
    int64_t sum = 0;
    for (const auto& group : groups) sum += group.bytes_per_block;
    return sum;
  }
};
StatusOr<InstanceBytes> plan_instance(const InstanceSpec& spec);

class ModelInstance {
 public:
  // `bytes` from plan_instance: arenas get exactly these sizes.
  ModelInstance(InstanceSpec spec, InstanceBytes bytes);

  Status init();  // threads and op table
  Status load(const WeightLoader::Progress& progress);
  Status allocate_kv(int32_t num_blocks);

  Model& model() { return *model_; }
  const KVCaches& caches() const { return caches_; }
  const InstanceSpec& spec() const { return spec_; }
  const InstanceBytes& bytes() const { return bytes_; }
  // Bytes really taken, for the law "plan = allocation".
  int64_t weights_used() const { return used(weights_); }
  int64_t scratch_used() const { return used(scratch_); }
  int64_t kv_used() const { return used(kv_); }

 private:
  StatusOr<std::unique_ptr<Allocator>> make_allocator(const char* name, int64_t bytes) const;
  static int64_t used(const std::unique_ptr<Allocator>& a) {
    return a == nullptr ? 0 : static_cast<int64_t>(a->used_bytes());
  }

  InstanceSpec spec_;
  InstanceBytes bytes_;
  std::unique_ptr<ComputePool> pool_;
  MetaTrace trace_;
  OpContext ops_;
  std::unique_ptr<Allocator> weights_, scratch_, kv_;
  std::unique_ptr<Model> model_;
  KVCaches caches_;
};

}  // namespace omnibus
