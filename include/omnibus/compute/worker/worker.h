// Worker: one rank of the data plane: model, KV cache and sampler behind WorkerBase.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/contract/step/worker_base.h"
#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

struct WorkerConfig {
  std::shared_ptr<const GgufFile> model;
  ParallelContext parallel;
  Device device;
  Numerics numerics = Numerics::kFast;
  CpuIsa cpu_isa = CpuIsa::kAuto;
  int32_t threads = 0;        // 0: available cores
  int32_t max_model_len = 0;  // 0: the model's own
  int32_t max_num_seqs = 32;
  int32_t max_num_batched_tokens = 512;
  int64_t kv_cache_bytes = 0;  // 0: min(25 % of the memory limit, max_num_seqs x max_model_len)
  std::function<void(int64_t done, int64_t total)> load_progress;  // bytes packed; may be empty
};

// join() ends with a real forward pass, so that a worker that joined can serve; what the KV cache held before
// is gone then. Steps run on the calling thread, futures are ready when they are returned; one step at a
// time.
//
// Sizes are checked against the model here: a max_model_len beyond the model's own, or one that does not fit
// the memory, is refused with the value that fits.
StatusOr<std::unique_ptr<WorkerBase>> make_worker(WorkerConfig config);

}  // namespace omnibus
