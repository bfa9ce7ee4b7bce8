// What the authors of a model recommend for sampling, as its file says.
#pragma once

#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

// From the keys general.sampling.{temp, top_k, top_p, min_p, penalty_repeat}. A value that no request could
// bring is left out, with a warning.
SamplingDefaults read_sampling_defaults(const GgufFile& file);

}  // namespace omnibus
