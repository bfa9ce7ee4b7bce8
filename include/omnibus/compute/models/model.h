// Model: the layers [begin, end) of one network on one rank, with the head or without.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/comm/parallel_context.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/layers/forward_batch.h"
#include "omnibus/compute/loader/weight_loader.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus/compute/ops/op_context.h"
#include "omnibus/contract/kv_spec/kv_cache_config.h"
#include "omnibus/store/model_files/model_config.h"

namespace omnibus {

// What a model is made with.
struct ModelContext {
  ModelConfig config;
  OpContext ops;
  ParallelContext parallel;
  DType kv_dtype = DType::kBF16;
  int32_t max_rows = 0;       // tokens of a step
  int32_t max_model_len = 0;  // tokens of a sequence
  int32_t max_head_rows = 0;  // rows of one LogitsHead::project
};

// Logits of the rows that need them.
class LogitsHead {
 public:
  virtual ~LogitsHead() = default;
  virtual int32_t max_rows() const = 0;
  virtual int32_t vocab_size() const = 0;
  // rows: indices into the last forward()'s batch, at most max_rows(). Spans in `outputs` are valid until the
  // next project().
  virtual Status project(std::span<const int32_t> rows, std::span<const HeadRequest> requests,
                         std::span<HeadOutput> outputs) = 0;
};

// One thread. load() once, then any number of forward()s.
class Model {
 public:
  virtual ~Model() = default;

  // Weights into the loader's allocator, temporaries into `scratch`. On kMeta both only count.
  virtual Status load(WeightLoader& loader, Allocator& scratch) = 0;
  // KV groups of this stage's layers, bytes_per_block included; from shapes alone, before load().
  virtual std::vector<KVGroupSpec> kv_spec() const = 0;
  // The caches of all layers; takes num_blocks * sum of bytes_per_block.
  virtual StatusOr<KVCaches> allocate_kv(int32_t num_blocks, Allocator& allocator) const = 0;
  // Stage 0 embeds the ids, later ones begin from `between`; a stage that is not the last leaves its residual
  // there. Null when this rank holds all layers.
  virtual Status forward(const ForwardBatch& batch, const KVCaches& caches, IntermediateTensors* between) = 0;
  // Null on stages before the last.
  virtual LogitsHead* head() = 0;
};

}  // namespace omnibus
