// What a run will send and when: drawn from the seed before it starts, so that two runs, or two servers, get
// the same.
#pragma once

#include <cstdint>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/config/bench_options.h"

namespace omnibus::client {

struct PlannedRequest {
  MonotonicNs at = 0;     // after the start of the run
  int32_t input_len = 0;  // tokens of the prompt, its shared prefix not counted
  int32_t output_len = 0;
  int32_t prefix = 0;  // which of the shared prefixes
};

// Lengths and arrivals of `count` requests.
//
// Arrivals: the first at 0; gaps are gamma distributed with shape `burstiness` (1: exponential, that is
// Poisson arrivals; infinite: constant), and stretched together so that the last of n arrives at (n - 1) /
// rate, as vLLM does: the rate is then met whatever the seed. With an infinite rate all arrive at 0.
//
// Lengths of ShareGPT's shape: log-normal with the means of prompts and answers that the vLLM paper gives
// (161.31 and 337.99 tokens; Kwon et al., SOSP'23, figure 11) and the spread of those that Sarathi-Serve
// gives (90th percentile over median: 5696/1730 and 834/415; Agrawal et al., OSDI'24, table 2). Drawn again
// where vLLM leaves a conversation out: fewer than 4 tokens, a prompt of more than 1,024, both together more
// than 2,048.
std::vector<PlannedRequest> make_load_plan(const BenchServeConfig& config, int32_t count);

}  // namespace omnibus::client
