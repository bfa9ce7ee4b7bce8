// FakeWorker: a WorkerBase without a model. Its tokens have a closed form, a hash of everything before them,
// so that any wrong, lost or repeated token shows. It keeps a mirror like a real worker and a KV cache whose
// slots hold the hash of their prefix: a step that reads a slot written by another request, or never written,
// fails with INTERNAL. So do plans that break the contract (gaps, unknown ids, limits), and requests that are
// given the KV of another adapter, salt or medium.
//
// Any number of steps may be prepared before the first is committed; they run in order. A plan that is
// prepared behind another is taken into the mirror when its turn comes, so its faults show at its commit.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "omnibus/contract/step/worker_base.h"

namespace omnibus::fakes {

struct FakeWorkerOptions {
  int32_t num_blocks = 64;
  std::vector<int64_t> group_bytes = {4096};  // bytes_per_block of each KV group
  int32_t chunk_alignment = 1;
  int32_t vocab_size = 512;
  // Limits to hold the plans to; 0: none.
  int32_t max_rows = 0;
  int32_t max_tokens_per_step = 0;
  // Cycled over each request's steps, as a replay script says; only without drafts.
  std::vector<int32_t> tokens_per_step = {1};
  int32_t n_drafts = 0;  // proposed per step; about one in three is wrong
  // Instead of the hash: the token after `known` (prompt + output).
  std::function<TokenId(const Request&, std::span<const TokenId> known)> token;
  // Rows for which this holds get kNumericError.
  std::function<bool(const Request&, size_t n_output)> is_nan;
  // Runs before each commit; non-OK becomes the commit's result. May throw, may block.
  std::function<Status(const SchedulerOutput&)> before_commit;
  bool wrong_digest = false;
};

// The closed form: the token after `known` for a request with this seed.
TokenId hash_token(uint64_t seed, std::span<const TokenId> known, int32_t vocab_size);
// Log-probability that the fake worker reports for `token` after `known`; exact in float.
float fake_logprob(std::span<const TokenId> known, TokenId token);

class FakeWorker final : public WorkerBase {
 public:
  explicit FakeWorker(FakeWorkerOptions options) : options_(std::move(options)) {}

  Status init() override { return absl::OkStatus(); }
  Status load() override { return absl::OkStatus(); }
  StatusOr<MemoryPlan> capacity() override;
  Status allocate_kv(const KVCacheConfig& config) override;
  Status join(const GroupSpec& group) override;
  std::future<StatusOr<PlanDigest>> prepare(SchedulerOutput plan) override;
  std::future<StatusOr<ModelRunnerOutput>> commit(StepId id) override;
  void abort(Epoch epoch) noexcept override;
  WorkerProgress progress() const override;
  Status control(const ControlOp& op) override;

  size_t mirror_size() const { return mirror_.size(); }

 private:
  struct Mirror {
    Request request;
    std::vector<TokenId> known;
    size_t computed = 0;
    bool is_new = true;                        // no row yet: its first may begin behind a cached prefix
    bool is_dead = false;                      // a row of it failed
    size_t steps = 0;                          // sampled so far in this life
    std::vector<std::vector<BlockId>> tables;  // per group
  };
  struct Prepared {
    SchedulerOutput plan;
    // Per request: tokens that were known when the plan was made; only these need no FromStep.
    std::map<RequestId, size_t> known;
    bool taken = false;
  };
  // What a row gave, for those that name it as their source.
  struct Sampled {
    RequestId id = 0;
    size_t n_tokens = 0;
    size_t position = 0;  // of the token
  };
  Status take_plan(Prepared& step);
  Status check_row(const Prepared& step, const ScheduledRow& row);
  Status check_source(const Prepared& step, const ScheduledRow& row, const Mirror& mirror) const;
  StatusOr<ModelRunnerOutput> run(const SchedulerOutput& plan);
  StatusOr<RowOutput> run_row(const ScheduledRow& row);
  Status write_and_read_kv(Mirror& mirror, const ScheduledRow& row);
  TokenId next_token(const Mirror& mirror) const;
  void sample(Mirror& mirror, const ScheduledRow& row, RowOutput& out);
  void add_prompt_logprobs(const Mirror& mirror, const ScheduledRow& row, RowOutput& out) const;

  FakeWorkerOptions options_;
  KVCacheConfig kv_;
  std::vector<std::map<BlockId, std::vector<uint64_t>>> slots_;  // per block size: prefix hashes
  std::vector<size_t> slots_of_group_;
  std::map<RequestId, Mirror> mirror_;
  std::deque<Prepared> prepared_;                     // oldest first
  std::map<uint64_t, std::vector<Sampled>> sampled_;  // by step: the last few
  PlanDigest digest_ = 0;
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> aborted_epoch_{0};
};

}  // namespace omnibus::fakes
