// ReplayWorker: a WorkerBase whose "model" follows a script (replay_script.h). Only the forward pass is
// replaced: penalties, bias, masks and the draw are the product's own, applied to the script's rows, so that
// everything in front of the worker is tested exactly and in milliseconds.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "omnibus/contract/step/worker_base.h"

#include "fakes/replay_script.h"

namespace omnibus::fakes {

class ReplayWorker final : public WorkerBase {
 public:
  explicit ReplayWorker(ReplayScript script) : script_(std::move(script)) {}

  Status init() override { return {}; }
  Status load() override { return {}; }
  StatusOr<MemoryPlan> capacity() override;
  Status allocate_kv(const KVCacheConfig& /*config*/) override { return {}; }
  Status join(const GroupSpec& group) override;
  std::future<StatusOr<PlanDigest>> prepare(SchedulerOutput plan) override;
  std::future<StatusOr<ModelRunnerOutput>> commit(StepId id) override;
  void abort(Epoch epoch) noexcept override { aborted_epoch_ = epoch; }
  WorkerProgress progress() const override;
  Status control(const ControlOp& /*op*/) override { return {}; }

 private:
  struct Sequence {
    Request request;
    const ReplayBehaviour* behaviour = nullptr;  // nullptr: EOS at once
    std::vector<TokenId> known;                  // prompt and output
    size_t steps = 0;
    FromStep last_sampled;  // row that gave the last token
    bool failed = false;
    size_t n_output() const { return known.size() - request.prompt_token_ids.size(); }
  };

  // A FromStep source must be the row that gave the request's last token.
  Status check_sources() const;
  StatusOr<RowOutput> run_row(const ScheduledRow& row);
  StatusOr<TokenId> draw_next(Sequence& sequence, RowOutput& out);
  // Logits of the next position: the script's row, or the scripted token alone.
  void fill_logits(const Sequence& sequence);
  void add_prompt_logprobs(const Sequence& sequence, const ScheduledRow& row, RowOutput& out) const;

  const ReplayScript script_;
  std::map<RequestId, Sequence> sequences_;
  SchedulerOutput plan_;
  ModelRunnerOutput last_;  // for "twice"
  PlanDigest digest_ = 0;
  std::vector<float> logits_, raw_;
  std::atomic<uint64_t> completed_{0}, aborted_epoch_{0};
};

}  // namespace omnibus::fakes
