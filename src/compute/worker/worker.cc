#include "omnibus/compute/worker/worker.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "omnibus/compute/comm/communicator.h"

#include "input_batch.h"
#include "memory_limit.h"
#include "model_instance.h"
#include "model_runner.h"
#include "worker_sizes.h"

namespace omnibus {
namespace {

template <typename T>
std::future<StatusOr<T>> ready(StatusOr<T> value) {
  std::promise<StatusOr<T>> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

// Runs inline: futures are ready when they are returned.
class Worker final : public WorkerBase {
 public:
  Worker(InstanceSpec spec, InstanceBytes bytes, MemoryPlan plan, WeightLoader::Progress progress)
      : instance_(std::move(spec), std::move(bytes)),
        plan_(std::move(plan)),
        load_progress_(std::move(progress)) {}

  Status init() override { return instance_.init(); }
  Status load() override { return instance_.load(load_progress_); }
  StatusOr<MemoryPlan> capacity() override { return plan_; }
  Status allocate_kv(const KVCacheConfig& config) override;
  Status join(const GroupSpec& group) override;

  std::future<StatusOr<PlanDigest>> prepare(SchedulerOutput plan) override {
    return ready<PlanDigest>(prepare_now(std::move(plan)));
  }
  std::future<StatusOr<ModelRunnerOutput>> commit(StepId id) override {
    return ready<ModelRunnerOutput>(commit_now(id));
  }
  void abort(Epoch epoch) noexcept override;
  WorkerProgress progress() const override;
  Status control(const ControlOp& op) override;

 private:
  StatusOr<PlanDigest> prepare_now(SchedulerOutput plan);
  StatusOr<ModelRunnerOutput> commit_now(StepId id);
  Status check_epoch(StepId id) const;
  void reset_mirror();

  ModelInstance instance_;
  const MemoryPlan plan_;
  const WeightLoader::Progress load_progress_;
  int32_t num_blocks_ = 0;
  std::optional<ModelRunner> runner_;
  std::optional<InputBatch> mirror_;
  PlanDigest digest_ = 0;
  Epoch epoch_ = 0;
  std::optional<SchedulerOutput> prepared_;
  std::vector<RequestState*> rows_;  // of the prepared plan

  std::atomic<Epoch> aborted_{0};  // this epoch and all before it are over
  std::atomic<uint64_t> ticks_{0};
  mutable std::mutex mutex_;  // guards the two below, read by other threads
  StepId last_completed_;
  std::shared_ptr<Communicator> tp_;
};

Status Worker::allocate_kv(const KVCacheConfig& config) {
  if (config.groups.size() != plan_.kv.groups.size())
    return absl::InvalidArgumentError(fmt::format("allocate_kv: {} KV groups, this model has {}",
                                                  config.groups.size(), plan_.kv.groups.size()));
  for (size_t g = 0; g < config.groups.size(); ++g)
    if (config.groups[g].bytes_per_block != plan_.kv.groups[g].bytes_per_block)
      return absl::InvalidArgumentError(
          fmt::format("allocate_kv: group {} has blocks of {} bytes, this model's take {}", g,
                      config.groups[g].bytes_per_block, plan_.kv.groups[g].bytes_per_block));
  if (config.num_blocks < 1) return absl::InvalidArgumentError("allocate_kv: at least one block is needed");
  OMNIBUS_RETURN_IF_ERROR(instance_.allocate_kv(config.num_blocks));
  num_blocks_ = config.num_blocks;
  OMNIBUS_ASSIGN_OR_RETURN(ModelRunner runner, ModelRunner::create(instance_, plan_.kv.groups));
  runner_.emplace(std::move(runner));
  return absl::OkStatus();
}

void Worker::reset_mirror() {
  MirrorLimits limits;
  limits.vocab_size = instance_.spec().config.vocab_size;
  limits.max_model_len = instance_.spec().max_model_len;
  limits.max_rows = instance_.spec().max_rows;
  limits.num_blocks = num_blocks_;
  limits.groups = static_cast<int32_t>(plan_.kv.groups.size());
  mirror_.emplace(limits);
  prepared_.reset();
  rows_.clear();
  digest_ = 0;
}

Status Worker::join(const GroupSpec& group) {
  if (!runner_) return absl::FailedPreconditionError("join before allocate_kv");
  if (group.epoch <= std::max(epoch_, aborted_.load()))
    return absl::FailedPreconditionError(
        fmt::format("join: epoch {} is not after epoch {}", group.epoch, std::max(epoch_, aborted_.load())));
  if (group.ranks.size() != 1)
    return absl::UnimplementedError(fmt::format(
        "join: a group of {} ranks, communicators between ranks are not built", group.ranks.size()));
  {
    std::lock_guard lock(mutex_);
    tp_ = make_self_communicator(group.epoch);
    last_completed_ = {};
  }
  epoch_ = group.epoch;
  reset_mirror();
  return runner_->warm_up(tp_.get());
}

Status Worker::check_epoch(StepId id) const {
  if (!mirror_) return absl::FailedPreconditionError("a step before join");
  if (id.epoch != epoch_)
    return absl::FailedPreconditionError(fmt::format("step of epoch {} in epoch {}", id.epoch, epoch_));
  if (aborted_.load(std::memory_order_acquire) >= epoch_)
    return absl::AbortedError(fmt::format("epoch {} was aborted", epoch_));
  return absl::OkStatus();
}

StatusOr<PlanDigest> Worker::prepare_now(SchedulerOutput plan) {
  OMNIBUS_RETURN_IF_ERROR(check_epoch(plan.id));
  if (prepared_)
    return absl::FailedPreconditionError(
        fmt::format("step {} is prepared and not committed", prepared_->id.seq));
  if (plan.numerics != instance_.spec().numerics)
    return absl::InvalidArgumentError("plan: its numerics are not those that this worker was loaded with");
  OMNIBUS_RETURN_IF_ERROR(mirror_->apply(plan, rows_));
  digest_ = digest_plan(digest_, plan);
  prepared_ = std::move(plan);
  return digest_;
}

StatusOr<ModelRunnerOutput> Worker::commit_now(StepId id) {
  OMNIBUS_RETURN_IF_ERROR(check_epoch(id));
  if (!prepared_ || prepared_->id != id)
    return absl::FailedPreconditionError(fmt::format("step {} was not prepared", id.seq));
  ticks_.fetch_add(1, std::memory_order_relaxed);
  StatusOr<ModelRunnerOutput> output = runner_->run(*prepared_, rows_, tp_.get());
  ticks_.fetch_add(1, std::memory_order_relaxed);
  prepared_.reset();
  if (!output.ok()) {  // the mirror may be half-way: this epoch is over
    abort(epoch_);
    return output;
  }
  OMNIBUS_RETURN_IF_ERROR(check_epoch(id));
  std::lock_guard lock(mutex_);
  last_completed_ = id;
  return output;
}

void Worker::abort(Epoch epoch) noexcept {
  Epoch seen = aborted_.load();
  while (seen < epoch && !aborted_.compare_exchange_weak(seen, epoch)) {
  }
  std::lock_guard lock(mutex_);
  if (tp_ != nullptr && tp_->epoch() <= epoch) tp_->abort();
}

WorkerProgress Worker::progress() const {
  std::lock_guard lock(mutex_);
  return {last_completed_, ticks_.load(std::memory_order_relaxed)};
}

Status Worker::control(const ControlOp& op) {
  switch (op.kind) {
    case ControlOp::Kind::kReset:
      if (!mirror_) return absl::FailedPreconditionError("reset before join");
      reset_mirror();
      return absl::OkStatus();
    case ControlOp::Kind::kSleep:
    case ControlOp::Kind::kWake:
      return absl::UnimplementedError("sleep and wake are not built");
    case ControlOp::Kind::kLoadAdapter:
    case ControlOp::Kind::kUnloadAdapter:
      return absl::UnimplementedError("adapters are not built");
  }
  return absl::InvalidArgumentError("control: unknown operation");
}

}  // namespace

StatusOr<std::unique_ptr<WorkerBase>> make_worker(WorkerConfig config) {
  const ParallelContext& p = config.parallel;
  if (p.tp_size != 1 || p.pp_size != 1 || p.ep_size != 1)
    return absl::UnimplementedError(fmt::format(
        "--tensor-parallel-size {}, --pipeline-parallel-size {}: workers of several ranks are not built",
        p.tp_size, p.pp_size));
  OMNIBUS_ASSIGN_OR_RETURN(InstanceSpec spec, resolve_sizes(config));
  OMNIBUS_ASSIGN_OR_RETURN(InstanceBytes bytes, plan_instance(spec));
  KVBudget budget;
  budget.memory_limit = memory_limit();
  budget.kv_cache_bytes = config.kv_cache_bytes;
  budget.max_num_seqs = config.max_num_seqs;
  budget.max_model_len = spec.max_model_len;
  OMNIBUS_ASSIGN_OR_RETURN(MemoryPlan plan, plan_memory(bytes, budget));
  return std::unique_ptr<WorkerBase>(std::make_unique<Worker>(
      std::move(spec), std::move(bytes), std::move(plan), std::move(config.load_progress)));
}

}  // namespace omnibus
