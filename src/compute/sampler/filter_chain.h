// The filters of sampling as sets: which tokens of a row may be drawn, and with what weight.
#pragma once

#include <cstdint>
#include <vector>

#include "omnibus/compute/ops/head.h"
#include "omnibus/contract/request/sampling_params.h"

namespace omnibus {

struct Kept {
  int32_t id = -1;
  float logit = 0;
  float weight = 0;  // exp((logit - max) / temperature)
};

// Largest top_k that the head serves as sorted candidates; above it the row is filtered here.
inline constexpr int32_t kMaxHeadCandidates = 256;

// True when every token of the row stays (temperature only).
bool keeps_all(const SamplingParams& params);

// Fills `kept` with the tokens that pass min-p, top-k and top-p, in ascending id; not for keeps_all().
// temperature > 0 and head.candidates not empty.
void filter_row(const HeadOutput& head, const SamplingParams& params, std::vector<Kept>& kept);

}  // namespace omnibus
