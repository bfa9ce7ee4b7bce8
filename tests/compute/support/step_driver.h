// StepDriver: a scheduler by hand, for tests of workers: decides chunks, batches, blocks and preemptions as
// told, and collects what comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "omnibus/contract/step/worker_base.h"

namespace omnibus {

struct DriverOptions {
  int32_t chunk = 1 << 20;     // most tokens of one request in one step
  int32_t max_running = 1000;  // most requests at a time
  int32_t step_tokens = 1 << 20;
  int32_t preempt_every = 0;  // > 0: each so many steps, one random running request is preempted
  bool shuffle_blocks = false;
  uint64_t seed = 1;
  // Drafts to try after the known tokens of a request; empty: none.
  std::function<std::vector<TokenId>(RequestId, const std::vector<TokenId>& known)> drafts;
};

struct DriverResult {
  std::vector<TokenId> tokens;
  std::vector<SampledLogprobs> logprobs;
  std::vector<SampledLogprobs> prompt_logprobs;
  RowStatus status = RowStatus::kOk;
  bool operator==(const DriverResult& other) const;
};

// One worker in one epoch. Requests end at max_tokens (stop ids are not judged).
class StepDriver {
 public:
  StepDriver(WorkerBase& worker, Epoch epoch, int32_t num_blocks, Numerics numerics)
      : worker_(worker), epoch_(epoch), num_blocks_(num_blocks), numerics_(numerics) {
    for (int32_t b = 0; b < num_blocks_; ++b) free_.push_back(b);
  }

  // Runs all requests to their end; throws std::runtime_error with the status of a failing step.
  std::map<RequestId, DriverResult> run(const std::vector<Request>& requests, const DriverOptions& options);
  int32_t steps() const { return static_cast<int32_t>(seq_); }
  PlanDigest digest() const { return digest_; }

 private:
  struct Sequence;
  bool make_row(Sequence& s, const DriverOptions& options, int32_t budget, SchedulerOutput& plan);
  void release(Sequence& s);
  ModelRunnerOutput execute(const SchedulerOutput& plan);

  WorkerBase& worker_;
  const Epoch epoch_;
  const int32_t num_blocks_;
  const Numerics numerics_;
  std::vector<BlockId> free_;
  uint64_t seq_ = 0;
  PlanDigest digest_ = 0;
  std::mt19937_64 rng_{1};
  std::vector<RequestId> finished_;
};

}  // namespace omnibus
