// TeacherForcing: full logits of every position of given token sequences, straight from a model instance.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/step/scheduler_output.h"

#include "src/compute/worker/model_instance.h"
#include "src/compute/worker/step_arrays.h"

namespace omnibus {

struct TeacherForcingOptions {
  Numerics numerics = Numerics::kF32;
  CpuIsa cpu_isa = CpuIsa::kAuto;
  int32_t threads = 0;
  int32_t max_tokens = 0;    // longest sequence; 0: the model's own context
  int32_t chunk = 256;       // tokens per forward pass
  ParallelContext parallel;  // a part of the model: logits are those of this rank's vocabulary share
  Communicator* tp = nullptr;
};

class TeacherForcing {
 public:
  static StatusOr<std::unique_ptr<TeacherForcing>> create(std::shared_ptr<const GgufFile> file,
                                                          const TeacherForcingOptions& options);

  // visit(position, logits [vocab]) for position = first .. ids.size() - 1, in order.
  using Visit = std::function<void(int32_t position, std::span<const float> logits)>;
  Status run(std::span<const TokenId> ids, int32_t first, const Visit& visit);
  int32_t vocab_size() const { return instance_->spec().config.vocab_size; }
  const ModelConfig& config() const { return instance_->spec().config; }

 private:
  TeacherForcing(std::unique_ptr<ModelInstance> instance, StepArrays arrays, Communicator* tp)
      : instance_(std::move(instance)), arrays_(std::move(arrays)), tp_(tp) {}
  Status project(int32_t base, int32_t begin, int32_t end, const Visit& visit);

  std::unique_ptr<ModelInstance> instance_;
  StepArrays arrays_;
  Communicator* tp_;
};

}  // namespace omnibus
