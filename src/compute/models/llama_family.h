// The Llama family: pre-norm decoder, RMSNorm, rotary embedding, grouped-query attention, SwiGLU. llama,
// qwen2 (biases on q, k, v) and qwen3 (norms on q and k) differ in what ModelConfig says, not in code.
#pragma once

#include <memory>

#include "omnibus/compute/models/model.h"

namespace omnibus {

std::unique_ptr<Model> make_llama_family(const ModelContext& context);

}  // namespace omnibus
