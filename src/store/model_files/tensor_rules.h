// Which tensors a dense Llama-family file must and may hold, with their shapes (GGUF names).
#pragma once

#include "omnibus/base/common/status.h"
#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"

namespace omnibus::model_files {

// Sets tied_head, attention_bias, qk_norm and rope.has_freq_factors from what is present, then checks every
// tensor: missing, unexpected, wrong shape, wrong type. The sizes in `config` are final.
Status apply_tensor_rules(const GgufFile& file, ModelConfig* config);

// Elements of all tensors, and the name of the commonest type of those with two or more dimensions.
void summarise_tensors(const GgufFile& file, ModelConfig* config);

}  // namespace omnibus::model_files
