// Small models with random weights, in memory: what properties of the data plane are tested on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/store/model_files/gguf.h"

#include "store/model_files/dense_file.h"

namespace omnibus {

struct RandomModel {
  DenseFile sizes;
  uint64_t seed = 1;
  std::function<void(fakes::GgufWriter&)> edit;  // after the weights are drawn
};

// Weights are scaled so that logits spread over several units. F32, F16, Q8_0, Q4_0 and Q4_1 matrices.
std::shared_ptr<const GgufFile> make_random_model(const RandomModel& model);

// One of each architecture of the registry, with what sets it apart.
DenseFile small_llama();  // llama3 frequency factors, Q4_1, uneven heads
DenseFile small_qwen2();  // biases, untied, Q8_0
DenseFile small_qwen3();  // q and k norms, head_dim apart from hidden / heads, Q4_0

}  // namespace omnibus
