#include "null_executor.h"

namespace omnibus {

StatusOr<MemoryPlan> NullExecutor::start() {
  MemoryPlan plan;
  KVGroupSpec group;
  group.layers = {0};
  group.bytes_per_block = 4096;
  plan.kv.groups.push_back(group);
  plan.kv.num_blocks = num_blocks_;
  return plan;
}

std::future<StatusOr<ModelRunnerOutput>> NullExecutor::execute(SchedulerOutput plan) {
  const int64_t begin = thread_cpu_ns();
  ModelRunnerOutput output;
  output.id = plan.id;
  output.duration_ns = 1'000'000;  // of a model's, so that the engine fits its cost as in earnest
  output.rows.reserve(plan.rows.size());
  for (const ScheduledRow& row : plan.rows) {
    RowOutput& out = output.rows.emplace_back();
    out.id = row.id;
    if (row.samples) out.tokens.push_back('x');
    tokens_ += row.n_tokens;
  }
  std::promise<StatusOr<ModelRunnerOutput>> promise;
  promise.set_value(std::move(output));
  auto result = promise.get_future();
  plan = {};  // what a worker would do with it is not the engine's time either
  cpu_ns_ += thread_cpu_ns() - begin;
  return result;
}

}  // namespace omnibus
